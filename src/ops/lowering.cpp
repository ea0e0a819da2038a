// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

namespace ingot::core::ops {
namespace {

std::string operand_name(const Node& node, size_t index) {
  const auto declared = node.op->operands;
  if (index + 1 < declared.size() || !declared.back().variadic) return std::string(declared[index].name);
  return fmt::format("{}{}", declared.back().name, index + 1 - declared.size());
}

}  // namespace

Expr lowest(DType dtype) {
  if (is_floating(dtype)) return loops::constant(dtype, -std::numeric_limits<double>::infinity());
  if (!is_signed(dtype)) return loops::integer_constant(dtype, 0);
  return loops::integer_constant(dtype, std::numeric_limits<int64_t>::min() >> (64 - bit_width(dtype)));
}

Expr highest(DType dtype) {
  if (is_floating(dtype)) return infinity(dtype);
  if (dtype == DType::kBool) return boolean(true);
  if (dtype == DType::kU64) return loops::integer_constant(dtype, -1);
  const int bits = bit_width(dtype) - (is_signed(dtype) ? 1 : 0);
  return loops::integer_constant(dtype, std::numeric_limits<int64_t>::max() >> (63 - bits));
}

KernelBuilder::KernelBuilder(const Node& node) : node_(node) {
  kernel_.name = std::string(node.op->name);
  for (size_t i = 0; i < node.operands.size(); ++i) {
    buffers_.push_back(node.operands[i] ? static_cast<int>(kernel_.buffers.size()) : -1);
    if (node.operands[i]) kernel_.buffers.push_back({operand_name(node, i), node.operand_type(i)});
  }
  first_result_ = static_cast<int>(kernel_.buffers.size());
  const bool in_place = node.op->traits.has(Trait::kInPlace);
  for (size_t i = 0; i < node.results.size(); ++i) {
    kernel_.buffers.push_back({i == 0 ? "result" : fmt::format("result{}", i), node.results[i]->type,
                               in_place && i == 0 ? loops::Access::kReadWrite : loops::Access::kWrite});
  }
}

Index KernelBuilder::parallel(const Shape& extents) {
  Index index;
  for (const Dim& extent : extents) {
    kernel_.parallel.push_back({fmt::format("$i{}", kernel_.parallel.size()), extent});
    index.push_back(Dim::symbol(kernel_.parallel.back().variable));
  }
  return index;
}

StageLoops KernelBuilder::loops(const Shape& extents) {
  StageLoops result;
  for (const Dim& extent : extents) {
    result.loops.push_back({fmt::format("$j{}", loop_count_++), extent});
    result.index.push_back(Dim::symbol(result.loops.back().variable));
  }
  return result;
}

DType KernelBuilder::dtype(size_t operand) const {
  return loops::arithmetic_dtype(node_.operand_type(operand).dtype);
}

Expr KernelBuilder::load(size_t operand, const Index& index) const {
  return loops::load(buffers_[operand], node_.operand_type(operand).dtype, index);
}

Expr KernelBuilder::load_broadcast(size_t operand, const Shape& shape, const Index& index) const {
  const Shape& own = node_.operand_type(operand).shape;
  Index at;
  for (size_t i = 0; i < own.size(); ++i) {
    const size_t aligned = shape.size() - own.size() + i;
    at.push_back(own[i] == Dim(1) && shape[aligned] != Dim(1) ? Dim(0) : index[aligned]);
  }
  return load(operand, at);
}

Dim KernelBuilder::bind(Expr value, const Dim& limit, bool wrap) {
  value = loops::convert(DType::kI64, value);
  if (wrap) {
    const Expr zero = loops::integer_constant(DType::kI64, 0);
    value = loops::select(below(value, zero), value + loops::index_value(limit), value);
  }
  bindings_.push_back({fmt::format("$k{}", binding_count_++), value, limit});
  return Dim::symbol(bindings_.back().symbol);
}

loops::Stage& KernelBuilder::add_stage(std::string name, Expr value) {
  loops::Stage& stage = kernel_.stages.emplace_back();
  stage.name = std::move(name);
  stage.bindings = std::exchange(bindings_, {});
  stage.value = std::move(value);
  return stage;
}

Expr KernelBuilder::scalar(std::string name, Expr value) {
  return local(row(std::move(name), {}, std::move(value)), {});
}

Expr KernelBuilder::reduce(std::string name, loops::Combine combine, const StageLoops& over, Expr value) {
  return local(row(std::move(name), {}, std::move(value), over, combine), {});
}

int KernelBuilder::row(std::string name, const StageLoops& over, Expr value, const StageLoops& reduced,
                       loops::Combine combine) {
  loops::Stage& stage = add_stage(std::move(name), std::move(value));
  stage.loops = over.loops;
  stage.reduce = reduced.loops;
  if (!reduced.loops.empty()) stage.combine = combine;
  return static_cast<int>(kernel_.stages.size()) - 1;
}

Expr KernelBuilder::local(int stage, const Index& index) const {
  return loops::local(stage, kernel_.stages[static_cast<size_t>(stage)].value->dtype, index);
}

Expr KernelBuilder::to_result(Expr value, size_t result) const {
  return loops::convert(loops::arithmetic_dtype(node_.results[result]->type.dtype), std::move(value));
}

void KernelBuilder::store(const Index& index, Expr value, const StageLoops& over, size_t result) {
  loops::Stage& stage =
      add_stage(kernel_.buffers[first_result_ + result].name, to_result(std::move(value), result));
  stage.loops = over.loops;
  stage.store = loops::Store{first_result_ + static_cast<int>(result), index};
}

void KernelBuilder::store_reduced(const Index& index, loops::Combine combine, const StageLoops& over,
                                  Expr value) {
  store(index, std::move(value));
  kernel_.stages.back().reduce = over.loops;
  if (!over.loops.empty()) kernel_.stages.back().combine = combine;
}

void KernelBuilder::store_scan(const Index& index, loops::Combine combine, const StageLoops& over,
                               Expr value) {
  const bool rounds =
      is_floating(value->dtype) && (combine == loops::Combine::kAdd || combine == loops::Combine::kMultiply);
  store(index, value, over);
  loops::Stage& stage = kernel_.stages.back();
  // Rounding errors of running sums and products accumulate over the whole row.
  if (rounds) stage.value = loops::convert(DType::kF64, std::move(value));
  stage.combine = combine;
  stage.scan = true;
}

loops::Kernel lower_elementwise(const Node& node,
                                const std::function<Expr(const std::vector<Expr>&)>& build) {
  KernelBuilder kernel(node);
  const Shape& shape = node.results[0]->type.shape;
  const Index index = kernel.parallel(shape);
  std::vector<Expr> values;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    values.push_back(kernel.has(i) ? kernel.load_broadcast(i, shape, index) : nullptr);
  }
  kernel.store(index, build(values));
  return kernel.finish();
}

loops::Kernel lower_view(const Node& node, const std::function<Index(const Index&)>& where) {
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  kernel.store(index, kernel.load(0, where(index)));
  return kernel.finish();
}

Dim linear_index(const Shape& shape, const Index& index) {
  Dim position = 0;
  for (size_t i = 0; i < shape.size(); ++i) position = position * shape[i] + index[i];
  return position;
}

Index delinearize(const Shape& shape, const Dim& position) {
  Index index(shape.size());
  Dim rest = position;
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = i == 0 ? rest : core::modulo(rest, shape[i]);
    rest = core::floor_divide(rest, shape[i]);
  }
  return index;
}

}  // namespace ingot::core::ops
