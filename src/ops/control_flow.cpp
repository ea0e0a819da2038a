// SPDX-License-Identifier: Apache-2.0
// What their graphs take and return: ir/control_flow.h.
#include "ops/ops.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kControlOperands[] = {{"condition", DTypeSet::kBool}, {.name = "values", .variadic = true}};

}  // namespace

constinit const Op branch = {.name = "branch",
                             .summary =
                                 "the results of its first graph if the condition is true, otherwise of "
                                 "its second",
                             .operands = kControlOperands,
                             .traits = Trait::kControlFlow};
constinit const Op loop = {.name = "loop",
                           .summary =
                               "the values that its graph passes on from iteration to iteration, at the "
                               "end; the condition says whether there is a first",
                           .operands = kControlOperands,
                           .traits = Trait::kControlFlow};

}  // namespace ingot::core::ops
