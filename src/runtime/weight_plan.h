// SPDX-License-Identifier: Apache-2.0
// Which weights of the main program stay on its device, and how runs copy the others there ahead of their use
// (docs/design/037-weight-streaming.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/executable.h"

namespace ingot::core {

// One copy of a weight from the host into a block of the context, the ring. It may start once all steps
// before `start` are done, and is done before step `before` starts; both are in one span.
struct WeightFetch {
  uint32_t weight = 0;
  size_t offset = 0, bytes = 0;  // in the ring
  uint32_t start = 0, before = 0;
};

// An argument of a step that reads a fetched weight.
struct FetchedArgument {
  uint32_t argument = 0;  // position in Executable::arguments
  uint32_t fetch = 0;
};

struct WeightPlan {
  size_t total = 0;            // bytes of all weights on the device
  size_t minimum = 0;          // the smallest budget
  size_t resident = 0;         // bytes that stay there
  size_t ring = 0;             // bytes of the ring
  std::vector<bool> streamed;  // per weight id; empty: all stay
  // Per weight id: kernels read it in memory of the host, since they read little of it (tables of
  // embeddings).
  std::vector<bool> read_there;
  std::vector<WeightFetch> fetches;  // by `before`, and by `start`
  std::vector<FetchedArgument> arguments;

  size_t used() const { return resident + ring; }
  bool stays(size_t weight) const { return !streamed[weight] && !read_there[weight]; }
};

// The plan that copies the least in `budget` bytes, or the smallest one if that is below the minimum. The
// weights are those of device 0; others, and those of nested programs, stay.
WeightPlan plan_weights(const Executable& main, const EngineData& data, size_t budget);

}  // namespace ingot::core
