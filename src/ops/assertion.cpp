// SPDX-License-Identifier: Apache-2.0
#include "ops/assertion.h"

#include "ops/infer.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kAssertionOperands[] = {{"condition", DTypeSet::kBool}};

Types infer_assert_true(const Node&) { return {}; }

}  // namespace

constinit const Op assert_true = {.name = "assert_true",
                                  .summary = "ends the run with an error unless all elements are true",
                                  .operands = kAssertionOperands,
                                  .attributes = attribute_schema<Assertion>(),
                                  .traits = Trait::kSideEffect,
                                  .infer = infer_assert_true,
                                  .routine = "assert_true"};

}  // namespace ingot::core::ops
