// SPDX-License-Identifier: Apache-2.0
#include "ops/assertion.h"

#include "ops/infer.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kAssertionOperands[] = {{"condition", DTypeSet::kBool}};

Types infer_assert_true(const Node&) { return {}; }

Samples assert_true_samples() {
  return {sample({tensor(DType::kBool, {}, 1, 1)}, Assertion{"sizes agree"}),
          sample({tensor(DType::kBool, {batch(), 3}, 1, 1)})};
}

}  // namespace

constinit const Op assert_true = {.name = "assert_true",
                                  .summary = "ends the run with an error unless all elements are true",
                                  .operands = kAssertionOperands,
                                  .attributes = attribute_schema<Assertion>(),
                                  .traits = Trait::kSideEffect,
                                  .infer = infer_assert_true,
                                  .routine = "assert_true",
                                  .samples = assert_true_samples};

}  // namespace ingot::core::ops
