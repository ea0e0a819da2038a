// SPDX-License-Identifier: Apache-2.0
// The fake device with the CPU's compiler beside it.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "backends/cpu/compile/backend.h"
#include "backends/fake/compile/backend.h"
#include "tests/backends/device/device_graphs.h"
#include "tests/backends/device/device_run.h"

namespace ingot::core::test {

using Choices = std::vector<BackendChoice>;

struct DividedDevice : Device {
  explicit DividedDevice(Choices choices = {}, uint64_t seed = 1) : Device(seed) {
    host_backend = &cpu::backend();
    backend_of = std::move(choices);
  }
};

// Gives the nodes of the graph, and of those in it, sides at random, or none.
inline void divide_at_random(Graph& graph, std::mt19937& random) {
  constexpr Side kSides[] = {Side::kHost, Side::kDevice, Side::kAny};
  for (const auto& node : graph.nodes()) {
    if (!node->op->traits.has(Trait::kSource)) node->side = kSides[random() % 3];
    for (const auto& nested : node->graphs) divide_at_random(*nested, random);
  }
}

inline std::vector<std::string> runners_of(const Program& program) {
  std::vector<std::string> runners;
  for (const Step& step : program.steps) {
    if (const auto* kernel = step.as<KernelStep>()) runners.push_back(kernel->backend);
    if (step.as<CopyStep>() != nullptr) runners.emplace_back("copy");
    if (step.as<RoutineStep>() != nullptr) runners.emplace_back("routine");
  }
  return runners;
}

}  // namespace ingot::core::test
