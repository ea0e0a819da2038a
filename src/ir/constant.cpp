// SPDX-License-Identifier: Apache-2.0
#include "ir/constant.h"

#include "ir/graph.h"
#include "support/error.h"

namespace ingot::core::ops {
namespace {

std::vector<TensorType> infer_constant(const Node& node) {
  if (node.literal == nullptr) throw UserError("INGOT-U112", "constant has no value");
  return {{.dtype = node.literal->dtype,
           .shape = {node.literal->shape.begin(), node.literal->shape.end()},
           .layout = {}}};
}

}  // namespace

constinit const Op constant = {.name = "constant",
                               .summary = "A tensor that is part of the program.",
                               .traits = Trait::kSource,
                               .infer = infer_constant};

}  // namespace ingot::core::ops
