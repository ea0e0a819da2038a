// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/converters/promotion.h"

#include <optional>

#include "ops/generate.h"
#include "ops/ops.h"

namespace ingot::core::aten {
namespace {

// The part of torch's ResultTypeState for operands of one category.
using Category = std::optional<DType>;

Category combine(const Category& higher, const Category& lower) {
  if (!higher || !lower) return higher ? higher : lower;
  if (is_complex(*higher)) return higher;
  if (is_floating(*higher)) return is_complex(*lower) ? promote(*higher, *lower) : *higher;
  if (*higher == DType::kBool || is_floating(*lower) || is_complex(*lower)) return promote(*higher, *lower);
  return higher;
}

}  // namespace

DType result_dtype(std::span<const PromotionOperand> operands) {
  Category by_rank[3];
  for (const PromotionOperand& operand : operands) {
    const bool is_real = operand.rank == PromotionOperand::Rank::kNumber && is_floating(operand.dtype);
    const DType dtype = is_real ? DType::kF32 : operand.dtype;
    Category& category = by_rank[static_cast<size_t>(operand.rank)];
    category = category ? promote(*category, dtype) : dtype;
  }
  return combine(by_rank[0], combine(by_rank[1], by_rank[2])).value_or(DType::kF32);
}

core::Value* scalar(core::Graph& graph, double value, DType dtype) {
  ops::Full full{.dtype = dtype};
  if (is_floating(dtype)) {
    full.value = value;
  } else {
    full.integer = dtype == DType::kBool ? static_cast<int64_t>(value != 0) : whole_number(graph, value);
  }
  return graph.call(ops::full, {}, full);
}

core::Value* size_scalar(core::Graph& graph, const Dim& size, DType dtype) {
  if (const auto value = size.constant(); value && is_floating(dtype))
    return scalar(graph, static_cast<double>(*value), dtype);
  if (dtype == DType::kBool && size.is_constant()) return scalar(graph, size != Dim(0), dtype);
  const bool direct = is_integer(dtype);
  core::Value* value =
      graph.call(ops::full, {}, ops::Full{.integer = size, .dtype = direct ? dtype : DType::kI64});
  return converted(graph, value, dtype);
}

}  // namespace ingot::core::aten
