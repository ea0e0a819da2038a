// SPDX-License-Identifier: Apache-2.0
// Elementwise functions that models rarely use, in a routine: gamma and Bessel functions, orthogonal
// polynomials.
#include "ops/special_function.h"
#include "ops/infer.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kSpecialOperands[] = {{"x", DTypeSet::kFloating},
                                        {.name = "y", .dtypes = DTypeSet::kFloating, .optional = true}};

Types infer_special_function(const Node& node) {
  require_same_dtype(node);
  if (node.operands.size() > 1 && node.operands[1] != nullptr)
    require_shape(node, 1, node.operand_type(0).shape);
  return infer_same(node);
}

Samples special_function_samples() {
  return {sample({f32({batch(), 3}, 1, 2)}, SpecialFunction{"log_gamma"}),
          sample({f32({4, 5}, 1, 2), f32({4, 5}, 1, 2)}, SpecialFunction{"lower_gamma"})};
}

}  // namespace

constinit const Op special_function = {
    .name = "special_function",
    .summary = "a special function of each element, or of two, by its name",
    .operands = kSpecialOperands,
    .attributes = attribute_schema<SpecialFunction>(),
    .infer = infer_special_function,
    .routine = "special_function",
    .samples = special_function_samples};

}  // namespace ingot::core::ops
