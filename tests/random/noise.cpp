// SPDX-License-Identifier: Apache-2.0
#include "tests/random/noise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "loops/kernel.h"
#include "loops/rewrite.h"
#include "ops/generate.h"
#include "ops/ops.h"
#include "ops/select.h"
#include "ops/step.h"
#include "support/error.h"

namespace ingot::core::random_graphs {
namespace {

// Who reads the value's elements, also behind nodes that pass them on.
std::set<const Node*> readers_of(const Value& value) {
  std::set<const Node*> passed, readers;
  std::vector<const Value*> pending{&value};
  while (!pending.empty()) {
    const Value* read = pending.back();
    pending.pop_back();
    for (const Node* user : read->users) {
      const bool passes_on = ops::passes_elements(*user);
      if (!passes_on) readers.insert(user);
      if (passes_on && passed.insert(user).second) pending.push_back(user->results[0]);
    }
  }
  return readers;
}

bool is_rounding(const loops::Expr& node) {
  using loops::Binary;
  using loops::Unary;
  if (!is_floating(node->dtype)) return false;
  if (node->kind == loops::ExprNode::Kind::kFma || node->kind == loops::ExprNode::Kind::kFunction)
    return true;
  if (node->kind == loops::ExprNode::Kind::kUnary)
    return node->unary != Unary::kNegate && node->unary != Unary::kAbsolute && node->unary != Unary::kFloor &&
           node->unary != Unary::kCeil && node->unary != Unary::kTruncate && node->unary != Unary::kRoundEven;
  return node->kind == loops::ExprNode::Kind::kBinary && node->binary != Binary::kMaximum &&
         node->binary != Binary::kMinimum;
}

double smallest_of(DType dtype) {
  if (dtype == DType::kF64) return std::numeric_limits<double>::denorm_min();
  return dtype == DType::kBF16 ? std::ldexp(1, -133) : std::numeric_limits<float>::denorm_min();
}

}  // namespace

bool rounds(const Node& node) {
  if (node.op->lower == nullptr) {
    constexpr const Op* kSelecting[] = {&ops::sort, &ops::top_k, &ops::median, &ops::kth_value};
    return std::ranges::find(kSelecting, node.op) == std::end(kSelecting);
  }
  const loops::Kernel kernel = node.op->lower(node);
  bool found = false;
  for (const loops::Stage& stage : kernel.stages) {
    const bool sums = stage.combine == loops::Combine::kAdd || stage.combine == loops::Combine::kMultiply;
    found |= sums && is_floating(stage.value->dtype);
    loops::visit(stage.value, [&](const loops::Expr& each) { found |= is_rounding(each); });
  }
  return found;
}

bool must_keep_rounding(const Node& node) {
  const bool narrows = node.op == &ops::convert && is_half(node.results[0]->type.dtype);
  if (!narrows || node.attributes<ops::Convert>().may_stay_wide) return false;
  return std::ranges::any_of(readers_of(*node.results[0]), [](const Node* reader) {
    const bool is_written = reader->op->traits.has(Trait::kInPlace) || reader->op->lower == nullptr;
    return ops::is_step(*reader) || (!rounds(*reader) && !is_written);
  });
}

Tensor converted(const Tensor& from, DType dtype) {
  Tensor to = make_tensor(dtype, from.shape);
  const TensorView source = from.view(), target = to.view();
  for_each_element(from, [&](const auto& index) { write_double(target, index, read_double(source, index)); });
  return to;
}

double noise_of(DType dtype) { return dtype == DType::kF64 ? std::ldexp(1, -51) : std::ldexp(1, -22); }

std::vector<bool> add_noise(Tensor& tensor, Random& random, double size, const Tensor* exact) {
  std::vector<bool> changed;
  if (!is_floating(tensor.dtype)) return changed;
  const TensorView view = tensor.view();
  std::uniform_real_distribution<double> uniform(-size, size);
  for_each_element(tensor, [&](const auto& index) {
    const double value = read_double(view, index);
    const bool is_exact = exact != nullptr && read_double(exact->view(), index) == value;
    changed.push_back(std::isfinite(value) && !is_exact);
    if (!changed.back()) return;
    const double noise = uniform(random);
    const double step = smallest_of(tensor.dtype) * std::round(noise / size);  // subnormals are that coarse
    write_double(view, index, value * (1 + noise) + (std::abs(value) < 1e-30 ? step : 0));
    if (std::isinf(read_double(view, index))) write_double(view, index, value * (1 - std::abs(noise)));
  });
  return changed;
}

void add_absolute_noise(Tensor& result, Random& random) {
  if (!is_floating(result.dtype)) return;
  const double size = noise_of(result.dtype);
  std::uniform_real_distribution<double> uniform(-size, size);
  const TensorView view = result.view();
  for_each_element(result, [&](const auto& index) {
    const double value = read_double(view, index);
    if (std::isfinite(value)) write_double(view, index, value + uniform(random));
  });
}

void add_tail_noise(Tensor& result, const Tensor& x, Random& random) {
  if (!is_floating(result.dtype)) return;
  const double size = noise_of(result.dtype) / 8;
  std::uniform_real_distribution<double> uniform(-size, size);
  const TensorView view = result.view(), from = x.view();
  for_each_element(result, [&](const auto& index) {
    const double value = read_double(view, index), moved = value + read_double(from, index) * uniform(random);
    if (std::isfinite(moved)) write_double(view, index, moved);
  });
}

Tensor whole_exponents(const Tensor& exponents) {
  Tensor changed = converted(exponents, exponents.dtype);
  const TensorView view = changed.view();
  for_each_element(changed, [&](const auto& index) {
    const double value = read_double(view, index);
    const double whole = std::rint(value);
    if (std::abs(value - whole) <= 64 * noise_of(exponents.dtype) * std::abs(value))
      write_double(view, index, whole);
  });
  return changed;
}

std::vector<bool> inexact(const Tensor& before, const Tensor& after, std::vector<bool> changed) {
  size_t element = 0;
  for_each_element(before, [&](const auto& index) {
    const bool is_rounded = read_double(before.view(), index) != read_double(after.view(), index);
    changed[element] = changed[element] || is_rounded;
    ++element;
  });
  return changed;
}

void soften(Tensor& tensor, const std::vector<bool>& changed, Random& random, int trajectory) {
  if (!is_half(tensor.dtype)) return;
  const TensorView view = tensor.view();
  const double bit = std::ldexp(1, tensor.dtype == DType::kF16 ? -10 : -7);
  size_t element = 0;
  for_each_element(tensor, [&](const auto& index) {
    const bool may_change = changed[element++];
    const double value = read_double(view, index);
    const double scale = value * (1 + bit * static_cast<double>(number(random, -1, 1)));
    if (std::isinf(value) && trajectory == 0) write_double(view, index, 0);
    if (may_change && std::isfinite(value) && std::isfinite(scale)) write_double(view, index, scale);
  });
}

void flush_to_zero(Tensor& tensor, double limit) {
  const TensorView view = tensor.view();
  for_each_element(tensor, [&](const auto& index) {
    const double value = read_double(view, index);
    if (std::abs(value) < limit) write_double(view, index, std::copysign(0.0, value));
  });
}

Promoted promote(const Node& node, bool (*is_promoted)(DType), DType to) {
  Promoted result;
  std::vector<Value*> operands;
  for (const Value* operand : node.operands) {
    if (operand == nullptr) {
      operands.push_back(nullptr);
      continue;
    }
    TensorType type{operand->type.dtype, operand->type.shape, {}};
    if (is_promoted(type.dtype)) type.dtype = to;
    operands.push_back(result.graph.add_input("x", type));
  }
  if (node.op == &ops::full && is_promoted(node.results[0]->type.dtype)) {
    auto full = node.attributes<ops::Full>();
    full.dtype = to;
    result.node = result.graph.call(ops::full, {}, full)->producer;
  }
  if (operands.empty()) return result;
  try {
    result.node = result.graph.add(*node.op, operands, node.values);
  } catch (const Error&) {
    result.node = nullptr;
  }
  return result;
}

std::vector<Tensor> evaluate_promoted(const Node& node, std::span<const Tensor* const> operands,
                                      const SymbolValues& symbols) {
  std::vector<Tensor> wide;
  std::vector<const Tensor*> pointers;
  wide.reserve(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == nullptr || operands[i]->dtype == node.operand_type(i).dtype) {
      pointers.push_back(operands[i]);
    } else {
      pointers.push_back(&wide.emplace_back(converted(*operands[i], node.operand_type(i).dtype)));
    }
  }
  return evaluate_node(node, pointers, symbols);
}

}  // namespace ingot::core::random_graphs
