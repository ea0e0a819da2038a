// SPDX-License-Identifier: Apache-2.0
// Rules that serve every operator of a kind: elementwise ones, those with axes, and all by their samples.
#include <algorithm>

#include "ops/ops.h"
#include "ops/select.h"
#include "tests/random/rules.h"

namespace ingot::core::random_graphs {
namespace {

std::vector<const Op*> ops_with(bool (*fits)(const Op&)) {
  std::vector<const Op*> fitting;
  for (const Op* op : ops::all_ops()) {
    if (fits(*op)) fitting.push_back(op);
  }
  return fitting;
}

bool has_samples(const Op& op) { return op.samples != nullptr && !op.samples().empty(); }
bool is_shift(const Op& op) { return &op == &ops::shift_left || &op == &ops::shift_right; }

bool is_elementwise(const Op& op) {
  return op.traits.has(Trait::kElementwise) && has_samples(op) && !op.operands.empty() && !is_shift(op);
}

bool names_axes(std::string_view name) { return name == "axis" || name == "axes"; }
bool names_positions(const AttributeValue& value) {
  return std::holds_alternative<Dim>(value) || std::holds_alternative<std::vector<Dim>>(value);
}
bool has_axes(const Op& op) {
  if (!has_samples(op) || op.operands.empty() || op.traits.has(Trait::kInPlace)) return false;
  if (std::ranges::any_of(op.attributes.defaults(), names_positions)) return false;  // of a sample's shape
  const bool takes_one = std::ranges::all_of(op.operands.subspan(1), &Operand::optional);
  return takes_one && !op.operands[0].variadic && std::ranges::any_of(op.attributes.names(), names_axes);
}

AttributeValues sampled_attributes(Maker& maker, const Op& op) {
  const auto samples = op.samples();
  const AttributeValues values = pick(maker.random(), samples).attributes;
  return values.empty() ? op.attributes.defaults() : values;
}

DType allowed_dtype(Maker& maker, DTypeSet set) {
  for (int i = 0; i < 20; ++i) {
    const DType dtype = maker.random_dtype();
    if (contains(set, dtype)) return dtype;
  }
  constexpr DType kCommon[] = {DType::kF32, DType::kI64, DType::kBool, DType::kI32};
  return *std::ranges::find_if(kCommon, [&](DType dtype) { return contains(set, dtype); });
}

// A shape that broadcasts with `shape`.
Shape broadcastable(Maker& maker, Shape shape) {
  if (maker.chance(0.55)) return shape;
  for (Dim& dim : shape) {
    if (maker.chance(0.4)) dim = 1;
  }
  while (!shape.empty() && maker.chance(0.3)) shape.erase(shape.begin());
  return shape;
}

void set_axes(Maker& maker, const Op& op, size_t rank, AttributeValues& values) {
  const auto names = op.attributes.names();
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == "keep_dims" || names[i] == "descending") values[i] = maker.chance(0.5);
    if (!names_axes(names[i])) continue;
    if (auto* axes = std::get_if<std::vector<int64_t>>(&values[i])) {
      axes->clear();
      for (size_t axis = 0; axis < rank; ++axis) {
        if (maker.chance(0.5)) axes->push_back(static_cast<int64_t>(axis));
      }
    } else {
      const bool counts = names[i] == "axes";  // so many, from the last on
      values[i] = maker.number(counts ? 1 : 0, static_cast<int64_t>(rank) - (counts ? 0 : 1));
    }
  }
}

// Symbols of samples become sizes.
class Sizes {
 public:
  explicit Sizes(Maker& maker) : maker_(maker) {}

  void apply(Dim& dim) {
    for (const std::string& symbol : dim.symbols()) sizes_.try_emplace(symbol, maker_.number(1, 6));
    dim = substitute(dim, sizes_);
  }
  void apply(AttributeValues& values) {
    for (AttributeValue& value : values) {
      if (auto* dim = std::get_if<Dim>(&value)) apply(*dim);
      if (auto* dims = std::get_if<std::vector<Dim>>(&value)) {
        for (Dim& dim : *dims) apply(dim);
      }
    }
  }

 private:
  Maker& maker_;
  std::map<std::string, Dim> sizes_;
};

}  // namespace

bool add_elementwise(Maker& maker) {
  static const std::vector<const Op*> all = ops_with(is_elementwise);
  const Op& op = *pick(maker.random(), all);
  Value* x = maker.any();
  const auto takes_x = [&](const Operand& rule) { return contains(rule.dtypes, x->type.dtype); };
  const auto first = std::ranges::find_if(op.operands, takes_x);
  const DType dtype =
      first == op.operands.end() ? allowed_dtype(maker, op.operands.back().dtypes) : x->type.dtype;
  const size_t own =
      static_cast<size_t>(maker.number(0, static_cast<int64_t>(op.operands.size()) - 1));  // where x stands
  std::vector<Value*> operands;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const DTypeSet set = op.operands[i].dtypes;
    const DType wanted = contains(set, dtype) && set != DTypeSet::kBool ? dtype : allowed_dtype(maker, set);
    operands.push_back(i == own ? maker.as(x, wanted)
                                : maker.partner({wanted, broadcastable(maker, x->type.shape), {}}));
  }
  AttributeValues values = sampled_attributes(maker, op);
  if (&op == &ops::convert) values = to_values(ops::Convert{maker.random_dtype()});
  return maker.add(op, std::move(operands), std::move(values)) != nullptr;
}

bool add_along_axis(Maker& maker) {
  static const std::vector<const Op*> all = ops_with(has_axes);
  const Op& op = *pick(maker.random(), all);
  Value* x = maker.any(1);
  if (!contains(op.operands[0].dtypes, x->type.dtype))
    x = maker.as(x, allowed_dtype(maker, op.operands[0].dtypes));
  if (x == nullptr) return false;
  AttributeValues values = sampled_attributes(maker, op);
  set_axes(maker, op, x->type.rank(), values);
  std::vector<Value*> operands = {x};
  for (size_t i = 1; i < op.operands.size(); ++i) {  // weight and bias of norms
    const Shape last(x->type.shape.end() - 1, x->type.shape.end());
    const bool there = maker.chance(0.5) && operands.back() != nullptr;
    operands.push_back(there ? maker.partner({x->type.dtype, last, {}}) : nullptr);
  }
  return maker.add(op, std::move(operands), std::move(values)) != nullptr;
}

bool add_sample(Maker& maker) {
  static const std::vector<const Op*> all = ops_with([](const Op& op) {
    // Winograd's and relayout are made by passes; attention has a rule of its own.
    const bool is_ours = op.name.starts_with("winograd") || &op == &ops::relayout || &op == &ops::attention;
    return has_samples(op) && !is_ours;
  });
  const Op& op = *pick(maker.random(), all);
  const auto samples = op.samples();
  const Sample& sample = pick(maker.random(), samples);
  constexpr DType kFloats[] = {DType::kF32, DType::kF32, DType::kF32, DType::kF64, DType::kF16, DType::kBF16};
  const DType dtype = pick(maker.random(), kFloats);
  Sizes sizes(maker);
  std::vector<Value*> operands;
  for (const SampleOperand& operand : sample.operands) {
    TensorType type = operand.type;
    for (Dim& dim : type.shape) sizes.apply(dim);
    const bool is_plain = type.dtype == DType::kF32 && operand.low == -2 && operand.high == 2;
    if (type.dtype == DType::kF32) type.dtype = dtype;
    Fill fill{Fill::Kind::kPlain, operand.low, operand.high};
    operands.push_back(is_plain ? maker.partner(type) : maker.source(type, fill));
  }
  AttributeValues values = sample.attributes;
  sizes.apply(values);
  return maker.add(op, std::move(operands), std::move(values)) != nullptr;
}

}  // namespace ingot::core::random_graphs
