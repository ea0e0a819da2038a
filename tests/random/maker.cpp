// SPDX-License-Identifier: Apache-2.0
#include "tests/random/maker.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/data_sizes.h"
#include "ops/model_source.h"
#include "ops/ops.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/view.h"
#include "support/error.h"

namespace ingot::core::random_graphs {
namespace {

constexpr int64_t kMostElements = 6000;
constexpr int64_t kMostPrinted = 32;  // elements of a literal in text form
constexpr int64_t kSizes[] = {1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 33};

bool is_static(const Shape& shape) {
  return std::ranges::all_of(shape, [](const Dim& dim) { return dim.is_constant(); });
}

}  // namespace

Maker::Maker(uint64_t seed) : random_(seed), special_(chance(0.6)) {
  for (int i = 0; i < 4; ++i) palette_.emplace_back(pick(random_, kSizes));
  if (!chance(0.35)) return;
  for (const char* name : {"N", "S"}) {
    if (!chance(0.7)) continue;
    graph_.symbols[name] = {.range = {number(1, 3), number(4, 20)}};
    palette_.push_back(Dim::symbol(name));
  }
}

int64_t Maker::most(const Dim& dim) const { return range_of(dim, graph_.symbols).max; }
int64_t Maker::least(const Dim& dim) const { return range_of(dim, graph_.symbols).min; }

DType Maker::random_dtype() {
  constexpr DType kRare[] = {DType::kI64, DType::kI32, DType::kBool, DType::kI8,   DType::kU8,
                             DType::kI16, DType::kF64, DType::kF16,  DType::kBF16, DType::kI64};
  return chance(0.6) ? DType::kF32 : pick(random_, kRare);
}

Dim Maker::random_dim() { return chance(0.1) ? Dim(1) : pick(random_, palette_); }

Shape Maker::random_shape(size_t rank) {
  Shape shape;
  int64_t elements = 1;
  for (size_t i = 0; i < rank; ++i) {
    Dim dim = random_dim();
    if (elements * most(dim) > kMostElements) dim = 1;
    elements *= most(dim);
    shape.push_back(dim);
  }
  return shape;
}

Fill Maker::fill_for(DType dtype) {
  if (!is_floating(dtype)) return {special_ ? Fill::Kind::kSpecial : Fill::Kind::kPlain, -5, 5};
  const double kind = std::uniform_real_distribution<double>(0, 1)(random_);
  if (special_ && kind < 0.5) return {Fill::Kind::kSpecial};
  return {kind > 0.75 ? Fill::Kind::kWhole : Fill::Kind::kPlain};
}

Value* Maker::any(size_t rank) {
  std::vector<Value*> fitting;
  for (Value* value : values_) {
    if (value->type.rank() >= rank) fitting.push_back(value);
  }
  if (fitting.empty() || chance(0.1)) {
    const TensorType type{random_dtype(), random_shape(std::max<size_t>(rank, number(1, 3))), {}};
    return source(type, fill_for(type.dtype));
  }
  const auto last = static_cast<int64_t>(fitting.size()) - 1;
  return fitting[static_cast<size_t>(std::max(number(0, last), number(0, last)))];
}

Value* Maker::as(Value* value, DType dtype) {
  if (value == nullptr || value->type.dtype == dtype) return value;
  const Node* node = add(ops::convert, {value}, ops::Convert{dtype});
  return node == nullptr ? nullptr : node->results[0];
}

Value* Maker::partner(const TensorType& type) {
  std::vector<Value*> same;
  for (Value* value : values_) {
    if (value->type.shape == type.shape) same.push_back(value);
  }
  if (!same.empty() && chance(0.6)) return as(pick(random_, same), type.dtype);
  if (type.rank() >= 2 && chance(0.3)) return transposed_source(type);
  return source(type, fill_for(type.dtype));
}

Value* Maker::transposed_source(const TensorType& type) {
  ops::Permutation permutation;
  for (size_t i = 0; i < type.rank(); ++i) permutation.order.push_back(static_cast<int64_t>(i));
  std::ranges::shuffle(permutation.order, random_);
  TensorType stored = type;
  for (size_t i = 0; i < type.rank(); ++i)
    stored.shape[static_cast<size_t>(permutation.order[i])] = type.shape[i];
  Value* whole = source(stored, fill_for(type.dtype));
  const Node* node = add(ops::transpose, {whole}, permutation);
  return node == nullptr ? nullptr : node->results[0];
}

Value* Maker::state(const TensorType& type, const Fill& fill) {
  const std::string name = fmt::format("s{}", sources_++);
  Value* value = graph_.call(ops::state, {}, ops::ModelSource{name, type.dtype, type.shape, {}});
  graph_.rename(value, name);
  states_.push_back(value);
  fills_[value] = fill;
  values_.push_back(value);
  return value;
}

Value* Maker::source(const TensorType& type, const Fill& fill) {
  const bool is_index = fill.kind == Fill::Kind::kIndex || fill.kind == Fill::Kind::kDistinct;
  const bool may_be_kept = is_static(type.shape) && !is_index;
  const double kind = std::uniform_real_distribution<double>(0, 1)(random_);
  if (may_be_kept && kind < 0.2) return state(type, fill);
  Value* value = nullptr;
  const std::string name = fmt::format("x{}", sources_++);
  if (may_be_kept && kind < 0.45 && is_floating(type.dtype)) {
    value = graph_.call(ops::weight, {}, ops::ModelSource{name, type.dtype, type.shape, {}});
    graph_.rename(value, name);
  } else if (may_be_kept && kind < 0.65 && most(element_count(type)) <= kMostPrinted) {
    value = graph_.add_constant(random_tensor(type, {}, fill, random_));
  } else {
    value = graph_.add_input(name, type);
  }
  fills_[value] = fill;
  values_.push_back(value);
  return value;
}

Dim Maker::found_position(int64_t last) {
  Value* position = source({DType::kI64, {}, {}}, {.kind = Fill::Kind::kIndex, .bound = Dim(last + 1)});
  const std::string name = fmt::format("U{}", sources_);
  graph_.symbols[name] = {.range = {0, last}, .upper_bound = Dim(last)};
  graph_.add(ops::bind_size, {position}, ops::DataSize{Dim::symbol(name)});
  return Dim::symbol(name);
}

Node* Maker::add(const Op& op, std::vector<Value*> operands, AttributeValues values) {
  const auto is_missing = [&](size_t i) {
    return operands[i] == nullptr && (i >= op.operands.size() || !op.operands[i].optional);
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    if (is_missing(i)) return nullptr;
  }
  try {
    Node* node = graph_.add(op, std::move(operands), std::move(values));
    for (const Value* result : node->results) {
      const Dim elements = element_count(result->type);
      if (least(elements) > 0 && most(elements) <= kMostElements) continue;
      graph_.erase(node);
      return nullptr;
    }
    values_.insert(values_.end(), node->results.begin(), node->results.end());
    return node;
  } catch (const UserError&) {  // an operator may refuse what it is offered
  } catch (const UnsupportedError&) {
  }
  return nullptr;
}

// Of some last values only a part is read, so that the others need not be computed.
void Maker::take_parts() {
  const std::vector<Value*> all = values_;
  for (Value* value : all) {
    if (!value->users.empty() || value->type.rank() == 0 || !chance(0.3)) continue;
    const auto axis = static_cast<size_t>(number(0, static_cast<int64_t>(value->type.rank()) - 1));
    const int64_t end = least(value->type.shape[axis]), count = number(1, std::max<int64_t>(end / 2, 1));
    const int64_t start = number(0, std::max<int64_t>(end - count, 0));
    add(ops::slice, {value}, ops::Slice{static_cast<int64_t>(axis), Dim(start), Dim(start + count)});
  }
}

// A state becomes the last value that has its type.
void Maker::set_updates() {
  for (Value* target : states_) {
    const auto fits = [&](const Value* value) {
      return value != target && value->type == target->type && value->producer != nullptr &&
             !value->producer->op->traits.has(Trait::kSource);
    };
    const auto found = std::find_if(values_.rbegin(), values_.rend(), fits);
    if (found != values_.rend() && chance(0.9)) graph_.updates.push_back({target, *found});
  }
}

void Maker::set_outputs() {
  for (Value* value : values_) {
    const bool is_source = value->producer == nullptr || value->producer->op->traits.has(Trait::kSource);
    const bool is_last = value->users.empty() && !graph_.is_output(value);
    if (!is_source && (is_last || chance(0.1))) graph_.outputs.push_back(value);
  }
  if (graph_.outputs.empty()) graph_.outputs.push_back(values_.back());
}

SymbolValues Maker::random_sizes() {
  SymbolValues sizes;
  for (const auto& [name, info] : graph_.symbols) sizes[name] = number(info.range.min, info.range.max);
  return sizes;
}

Case Maker::finish() {
  // Every symbol is bound by an input or a node.
  for (auto symbol = graph_.symbols.begin(); symbol != graph_.symbols.end();) {
    const auto binds = [&](const Value* input) {
      return std::ranges::find(input->type.shape, Dim::symbol(symbol->first)) != input->type.shape.end();
    };
    const bool is_bound = symbol->second.upper_bound || std::ranges::any_of(graph_.inputs(), binds);
    symbol = is_bound ? std::next(symbol) : graph_.symbols.erase(symbol);
  }
  take_parts();
  set_updates();
  set_outputs();
  Case test{std::move(graph_), {}, {}, chance(0.5)};
  for (const auto& node : test.graph.nodes()) {
    if (!node->op->traits.has(Trait::kSource) || node->literal != nullptr) continue;
    const Value* value = node->results[0];
    test.sources.emplace(node->attributes<ops::ModelSource>().name,
                         random_tensor(value->type, {}, fills_[value], random_));
  }
  std::swap(graph_, test.graph);
  for (int run = 0; run < 2; ++run) {
    const SymbolValues sizes = random_sizes();
    auto& inputs = test.runs.emplace_back();
    for (const Value* input : graph_.inputs())
      inputs.push_back(random_tensor(input->type, sizes, fills_[input], random_));
  }
  std::swap(graph_, test.graph);
  return test;
}

}  // namespace ingot::core::random_graphs
