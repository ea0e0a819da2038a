// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/precision.h"

#include <algorithm>

#include "backends/cpu/compile/templates/kernel_template.h"
#include "backends/cpu/compile/templates/target.h"

namespace ingot::core::cpu {
namespace {

// Two tiles: with more rows, multiplying takes longer than reading weights.
constexpr int64_t kFewRows = 16;

bool allows(const Target& target, DType dtype) { return std::ranges::count(target.precisions, dtype) > 0; }

bool has_few_rows(const PrecisionSite& site) {
  const Shape& shape = site.contraction.operand_type(0).shape;
  const Dim rows = product(std::span(shape.data(), shape.size() - 1));
  return evaluate(rows, typical_sizes(site.symbols)) <= kFewRows;
}

}  // namespace

PrecisionChoice choose_precision(const PrecisionSite& site, const Target& target) {
  const Node& node = site.contraction;
  if (allows(target, DType::kBF16) && has_template_of(node, DType::kBF16, target))
    return {.operands = DType::kBF16, .weight = DType::kBF16};
  if (node.op != &ops::linear || !site.has_fixed_weight)
    return {.reason = "this processor multiplies f32 faster"};
  if (!has_few_rows(site)) return {.reason = "this processor multiplies many rows faster in f32"};
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    if (allows(target, dtype)) return {.weight = dtype};
  }
  return {.reason = "no enabled dtype has weights that are converted as they are loaded"};
}

}  // namespace ingot::core::cpu
