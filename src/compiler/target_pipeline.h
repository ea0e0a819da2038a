// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "partition/choose_sides.h"
#include "passes/pipeline.h"

namespace ingot::core {

// A neighbour that did not join a region, and why.
struct Refusal {
  std::string_view region, node;  // operators
  std::string_view reason;
  auto operator<=>(const Refusal&) const = default;
};
using Refusals = std::map<Refusal, int64_t>;  // how often

// A contraction of f32 that is quantized, or where narrower dtypes are enabled, and what it is computed in.
struct NodePrecision {
  std::string node, op, source;
  PrecisionChoice choice;
};

// What a build's passes report about nodes.
struct NodeReports {
  Refusals refusals;                      // of neighbours to join regions
  std::vector<NodePrecision> precisions;  // empty for models of f32 if the target enables no others
  ChosenBackends backends;                // of nodes that do not simply follow the device
};

// The pass table of a build: the passes of every target, parameterized by the backends, and their own, each
// for the nodes that the backend runs. The backends and `reports`, which its passes fill (may be null), must
// outlive the table.
std::vector<Pass> pipeline_for(const EngineBackends& backends, NodeReports* reports = nullptr);
std::vector<Pass> pipeline_for(const Backend& backend, const Target& target, NodeReports* reports = nullptr);

}  // namespace ingot::core
