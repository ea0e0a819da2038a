// SPDX-License-Identifier: Apache-2.0
// An engine with the contexts that Python's threads run it in.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>
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

// Counts the forks up to this process from now on; the module asks for it when it is loaded.
void watch_forks();

// Idle contexts are kept for the next call; an engine with state has one context, which callers take in turn.
class Session {
 public:
  // `threads`: of each context, the caller included; 0: those of the process. Not below 0.
  explicit Session(EngineHandle engine, int threads = 0);

  ingot_engine* engine() const { return engine_.get(); }

  // Runs on the tensor inputs, in order; returns the output tensors as a list. `like` is an array of the
  // framework to allocate outputs in.
  nb::list run(std::span<const nb::handle> inputs, nb::handle like);

  ingot_memory memory();
  int threads();
  void reset_states();
  // Times each step of the runs from now on, or stops; then `profile` is JSON. For one thread at a time.
  void set_profiling(bool on);
  std::string profile();
  // A session of its own that shares the engine's memory and begins with the states that this one has now.
  Session copy();

 private:
  // Of an engine with state: waits until no other thread has its context. A forked child lacks the thread
  // that had it, and the context with it: the next caller there begins with the initial states.
  std::unique_lock<std::mutex> take_turn();
  bool is_updated(size_t input) const { return input < updated_.size() && !updated_[input].empty(); }
  ContextHandle acquire();
  void release(ContextHandle context);

  EngineHandle engine_;
  int threads_;
  std::vector<ContextHandle> idle_;   // guarded by the GIL
  std::vector<std::string> updated_;  // by input: its name if calls write its memory, else ""
  bool has_own_state_ = false;
  std::unique_ptr<std::mutex> turn_ = std::make_unique<std::mutex>();
  int turn_forks_ = 0;  // the fork count of the process that made `turn_`
};

}  // namespace ingot::python
