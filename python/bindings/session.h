// SPDX-License-Identifier: Apache-2.0
// An engine and the contexts in which Python's threads run it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exchange.h"
#include "outputs.h"
#include "status.h"
#include "tensor_views.h"
#include "turn.h"
#include "write_rules.h"

namespace ingot::python {

struct EngineDeleter {
  void operator()(ingot_engine* engine) const { ingot_engine_free(engine); }
};
struct ContextDeleter {
  void operator()(ingot_context* context) const { ingot_context_free(context); }
};
using EngineHandle = std::unique_ptr<ingot_engine, EngineDeleter>;

// The groups of ranks of contexts, by the engine's names. Never changed, since a context that is being made
// reads them without the GIL.
using BoundGroups = std::vector<std::pair<std::string, std::shared_ptr<ingot_group>>>;

// A context, with the engine and the groups that it was made with.
struct ContextHandle {
  std::unique_ptr<ingot_context, ContextDeleter> context;
  std::shared_ptr<const BoundGroups> groups;
  std::shared_ptr<ingot_engine> engine;
  ingot_context* get() const { return context.get(); }
};

// How contexts run.
struct Running {
  int threads = 0;  // of each context, the caller included; 0: those of the process. Not negative.
  int32_t check_indices = INGOT_CHECK_INDICES_LATER;
  bool uses_graphs = true;  // of CUDA
};

// An input of an engine.
struct SessionInput {
  std::string name;         // as errors call it: "input 'x'"
  bool is_updated = false;  // whether calls write its memory
};

// Idle contexts are kept for later calls, unless other groups were bound meanwhile; an engine with state has
// one context, which callers take in turn.
class Session {
 public:
  explicit Session(EngineHandle engine, const Running& running = {});

  // Valid while the GIL is held.
  ingot_engine* engine() const { return engine_.get(); }
  // For calls without the GIL, during which another thread may call `take_engine`.
  std::shared_ptr<ingot_engine> hold() const { return engine_; }

  // Runs on the tensor inputs, in order; returns the output tensors as a list. `like` is an array of the
  // framework that outputs are allocated in; they are on a GPU if an input is, or else if
  // `like` is: then `like_gpu` is its number. `weights`: a copy of the engine whose weights count, or null.
  nb::list run(std::span<const nb::handle> inputs, nb::handle like, std::optional<int32_t> like_gpu = {},
               const std::shared_ptr<ingot_engine>& weights = nullptr) {
    return run(inputs, like, like_gpu, weights, nullptr, nullptr);
  }
  // The same, with results of small calls allocated beforehand (SpareOutputs), and views of tensors that the
  // last call had too. Not for operators of torch's graphs: inductor looks for tensors that it does not know
  // in the memory of its CUDA graphs.
  nb::list run_ahead(std::span<const nb::handle> inputs, nb::handle like,
                     std::optional<int32_t> like_gpu = {},
                     const std::shared_ptr<ingot_engine>& weights = nullptr) {
    return run(inputs, like, like_gpu, weights, &spare_, &views_);
  }

  ingot_memory memory();
  int threads();
  // For contexts that are made from now on: before the first call.
  void set_running(int32_t check_indices, bool uses_graphs);
  void run_like(const Session& other) { running_ = other.running_; }
  void reset_states();
  // Starts or stops timing each step of later runs; `profile` then returns JSON. For one thread at a time.
  void set_profiling(bool on);
  std::string profile();
  // Calls `callback(step, name, value)` with each value that a step of later runs computes; None: no longer.
  // For one thread at a time. Its first exception ends the calls and is raised by the run.
  void set_observer(nb::object callback);
  // The groups of ranks of contexts that are made from now on, by the engine's names.
  void set_groups(BoundGroups groups);
  const BoundGroups& groups() const { return *groups_; }
  // An independent session that shares the engine's memory and starts with the current states of this one.
  Session copy();
  Session copy_to(int gpu);  // of an engine for GPUs
  Session copy_weights();    // of which only the weights are meant, for `run`
  // Runs the engine of `other` from the next call on, which is the same model built with other options. Calls
  // in flight end with the old one; owned states keep their values and addresses. `other` is left with the
  // old engine.
  void take_engine(Session& other);
  // Copies the values of owned states from a session of the same model.
  void copy_states(Session& from);
  // How often the engine's weights were replaced.
  int64_t refits() const { return refits_; }
  void count_refit() { ++refits_; }

 private:
  // For an engine with state: waits until no other thread uses its context. If a fork loses the thread that
  // used it, the context is lost too: the next caller in the child starts with the initial states.
  std::unique_lock<std::mutex> take_turn();
  bool is_updated(size_t input) const { return input < inputs_.size() && inputs_[input].is_updated; }
  nb::list run(std::span<const nb::handle> inputs, nb::handle like, std::optional<int32_t> like_gpu,
               const std::shared_ptr<ingot_engine>& weights, SpareOutputs* spare, TensorViews* views);
  ingot_tensor view(size_t input, nb::handle object, ArrayView& view, std::vector<nb::object>& kept,
                    TensorViews* views, const WriteRules* rules);
  class Borrowed;
  Session with_states(ingot_engine* copy);
  ContextHandle acquire();
  void release(ContextHandle context);

  struct Observer {
    nb::object callback;
    std::exception_ptr failure;
  };
  static void observe(void* observer, size_t step, const char* name, const ingot_tensor* value);

  std::shared_ptr<ingot_engine> engine_;
  Running running_;
  int64_t refits_ = 0;  // guarded by the GIL, as is `engine_`
  std::shared_ptr<const BoundGroups> groups_ = std::make_shared<const BoundGroups>();
  std::unique_ptr<Observer> observer_;  // null: nobody looks
  std::vector<ContextHandle> idle_;     // guarded by the GIL
  std::vector<SessionInput> inputs_;
  SpareOutputs spare_;
  TensorViews views_;
  bool has_own_state_ = false;
  Turn turn_;
};

}  // namespace ingot::python
