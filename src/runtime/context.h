// SPDX-License-Identifier: Apache-2.0
// Context: what one thread needs to run an engine. Cheap; two runs of one context never overlap.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/engine.h"

namespace ingot::core {

// An argument of a run: borrowed memory. Inputs whose strides are not dense row-major are copied first.
struct Argument {
  void* data;
  DType dtype;
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides;  // null: row-major
};

// Allocates output `index` of `bytes` bytes with these sizes; returns 64-byte aligned memory that the caller
// owns.
struct OutputAllocator {
  void* (*allocate)(void* context, size_t index, DType dtype, std::span<const int64_t> shape, size_t bytes);
  void* context;
};

class Context {
 public:
  explicit Context(std::shared_ptr<Engine> engine);
  ~Context();
  Context(Context&&) noexcept;

  // Sizes of the outputs for these input sizes, without running. UserError INGOT-U30x names input, dim and
  // range.
  std::vector<std::vector<int64_t>> output_shapes(std::span<const Argument> inputs);

  // Runs the main program. `inputs` are the tensor inputs in order; outputs come from the allocator.
  // Allocates nothing itself after the first run of a shape, except when the arena has to grow.
  void run(std::span<const Argument> inputs, const OutputAllocator& allocator);

  // Binds state `index` to memory of the caller (torch's own buffer), by address; the default is memory of
  // the context that starts with the engine's initial value.
  void bind_state(size_t index, void* data);
  void reset_states();

  struct Memory {
    size_t arena, states, scratch;  // bytes
    size_t cached_plans;
  };
  Memory memory() const;
  const Engine& engine() const { return *engine_; }

 private:
  std::shared_ptr<Engine> engine_;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ingot::core
