// SPDX-License-Identifier: Apache-2.0
// Operators without operands: weights and state (constants are in ir/constant.cpp).
#include "ops/infer.h"
#include "ops/model_source.h"
#include "ops/ops.h"
#include "types/layout_rules.h"

namespace ingot::core::ops {
namespace {

std::vector<TensorType> infer_source(const Node& node) {
  const auto source = node.attributes<ModelSource>();
  require(is_bijection(source.layout, source.shape.size()), node, "the layout must store each element once");
  return {{.dtype = source.dtype, .shape = source.shape, .layout = source.layout}};
}

}  // namespace

constinit const Op weight = {
    .name = "weight",
    .summary = "A parameter or floating-point buffer, whose value the compiler never reads.",
    .attributes = attribute_schema<ModelSource>(),
    .traits = Trait::kSource,
    .infer = infer_source};

constinit const Op state = {
    .name = "state",
    .summary = "A tensor that a context keeps between runs, with its value at the start of the run.",
    .attributes = attribute_schema<ModelSource>(),
    .traits = Trait::kSource,
    .infer = infer_source};

}  // namespace ingot::core::ops
