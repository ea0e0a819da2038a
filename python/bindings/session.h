// SPDX-License-Identifier: Apache-2.0
// An engine with the contexts that Python's threads run it in.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "exchange.h"
#include "status.h"

namespace ingot::python {

struct EngineDeleter {
  void operator()(ingot_engine* engine) const { ingot_engine_free(engine); }
};
struct ContextDeleter {
  void operator()(ingot_context* context) const { ingot_context_free(context); }
};
using EngineHandle = std::unique_ptr<ingot_engine, EngineDeleter>;
using ContextHandle = std::unique_ptr<ingot_context, ContextDeleter>;

// Idle contexts are kept for the next call; an engine with state has one context, which callers take in turn.
class Session {
 public:
  explicit Session(EngineHandle engine);

  ingot_engine* engine() const { return engine_.get(); }

  // Runs on the tensor inputs, in order; returns the output tensors as a list. `like` is an array of the
  // framework to allocate outputs in.
  nb::list run(std::span<const nb::handle> inputs, nb::handle like);

  ingot_memory memory();
  void reset_states();
  // A session of its own that shares the engine's memory and begins with the states that this one has now.
  Session copy();

 private:
  // Of an engine with state: waits until no other thread has its context.
  std::unique_lock<std::mutex> take_turn();
  ContextHandle acquire();
  void release(ContextHandle context);

  EngineHandle engine_;
  std::vector<ContextHandle> idle_;  // guarded by the GIL
  bool has_own_state_ = false;
  std::unique_ptr<std::mutex> turn_ = std::make_unique<std::mutex>();
};

}  // namespace ingot::python
