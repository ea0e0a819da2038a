// SPDX-License-Identifier: Apache-2.0
#include "ops/ops.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kFusedOperands[] = {{.name = "operands", .variadic = true}};

}  // namespace

constinit const Op fused = {.name = "fused",
                            .summary = "A nested graph that a backend compiles to one kernel.",
                            .operands = kFusedOperands,
                            .traits = Trait::kFused};

}  // namespace ingot::core::ops
