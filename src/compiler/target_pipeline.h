// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "passes/pipeline.h"

namespace ingot::core {

// A neighbour that did not join a region, and why.
struct Refusal {
  std::string_view region, node;  // operators
  std::string_view reason;
  auto operator<=>(const Refusal&) const = default;
};
using Refusals = std::map<Refusal, int64_t>;  // how often

// The pass table of a build: the passes of every target, parameterized by the backend, and the backend's own.
// The backend and `refusals` (may be null), which counts what it refuses, must outlive the table.
std::vector<Pass> pipeline_for(const Backend& backend, const Target& target, Refusals* refusals = nullptr);

}  // namespace ingot::core
