// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exporters/onnx/onnx_model.h"
#include "ir/graph.h"
#include "types/tensor.h"

namespace ingot::core::exported {

// A model's program between import and lowering.
struct GraphSource {
  const Graph& main;
  const Graph& init;  // without nodes: there is none
  // The values of the model's weight k, row-major; none if they are unknown.
  std::function<std::optional<Tensor>(int64_t source)> weight;
  std::vector<std::string> outputs;  // their names in the model's result
  std::string doc;
  Metadata metadata;
};

// `main` becomes the model's graph, `init` a function of kProgramDomain whose outputs have the names of the
// prepared weights, each fused region a function of kRegionDomain, and graphs of control flow attributes.
OnnxModel export_graphs(const GraphSource& source);

}  // namespace ingot::core::exported
