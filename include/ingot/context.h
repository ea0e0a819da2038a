// SPDX-License-Identifier: Apache-2.0
// Contexts: the state that one thread needs to run an engine.
#pragma once

#include "ingot/require_cpp20.h"
#if INGOT_HAS_CPP20

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ingot/engine.h"
#include "ingot/error.h"
#include "ingot/group.h"
#include "ingot/tensor.h"

namespace ingot {

// Options of a context.
struct ContextOptions {
  // Threads of this context's runs, the calling one included; the others belong to this context, so that
  // concurrent contexts do not wait for each other. At most what affinity and quota allow. 0: the threads of
  // the process (`set_threads`), which one run uses at a time. Does not affect results.
  int threads = 0;
  // Memory for arena, scratch of kernels and routines, copies of inputs and owned states; must outlive the
  // context. Null: the system's memory.
  std::pmr::memory_resource* memory = nullptr;
  // Groups of ranks for the engine's collectives, by the engine's names (`Engine::groups`); "" is for its
  // only one. Those that are missing are described by the environment: INGOT_RANK, INGOT_WORLD_SIZE,
  // INGOT_ADDRESS.
  std::map<std::string, Group, std::less<>> groups = {};
  // On a GPU: whether a call waits until its work is done, and tells an index out of range itself
  // (INGOT-U310), and whether the calls of a shape become a CUDA graph.
  bool checks_indices_at_once = false;
  bool uses_cuda_graphs = true;
};

// Cancels runs from another thread; must outlive them. Thread-safe.
class Cancellation {
 public:
  void cancel() noexcept { flag_.store(1, std::memory_order_release); }
  void reset() noexcept { flag_.store(0, std::memory_order_release); }  // while no run uses it
  bool is_cancelled() const noexcept { return flag_.load(std::memory_order_acquire) != 0; }

 private:
  friend class Context;
  static_assert(sizeof(std::atomic<int32_t>) == sizeof(int32_t) && std::atomic<int32_t>::is_always_lock_free);
  const int32_t* flag() const noexcept { return reinterpret_cast<const int32_t*>(&flag_); }

  std::atomic<int32_t> flag_{0};
};

// Limits that end a run early. Both are checked before each step; the context stays usable, but outputs and
// states may be partly written.
struct RunOptions {
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::time_point::max();  // INGOT-U317
  const Cancellation* cancellation = nullptr;        // INGOT-U316
  // A copy of the context's engine (Engine::copy), whose weights the run reads; null: those of the engine. So
  // contexts and their memory serve several sets of weights. INGOT-U328 if it is not a copy.
  const Engine* weights = nullptr;
};

using NamedTensors = std::map<std::string, Tensor, std::less<>>;

// Cheap; one per thread. Two runs of one context must not overlap. Keeps its engine alive.
class Context {
 public:
  // UserError INGOT-U351 and U352 if the engine is not for these groups of ranks, INGOT-U002 if the number of
  // threads is below 0 or above 1024; DeviceError INGOT-D003 if the
  // system cannot start them, INGOT-D303 if `options.memory` cannot allocate.
  explicit Context(Engine engine, const ContextOptions& options = {}) : engine_(std::move(engine)) {
    const ingot_allocator allocator = allocator_of(options.memory);
    std::vector<ingot_group_binding> groups;
    for (const auto& [name, group] : options.groups) groups.push_back({name.c_str(), group.handle()});
    const ingot_context_options given{
        sizeof(ingot_context_options),
        options.threads,
        options.memory == nullptr ? nullptr : &allocator,
        groups.data(),
        groups.size(),
        options.checks_indices_at_once ? INGOT_CHECK_INDICES_SYNC : INGOT_CHECK_INDICES_LATER,
        options.uses_cuda_graphs ? 0 : 1};
    ingot_context* context = nullptr;
    detail::check(ingot_context_create_with(engine_.handle(), &given, &context));
    handle_.reset(context);
    for (const Port& port : engine_.inputs()) input_names_.push_back(port.name);
    for (const Port& port : engine_.outputs()) output_names_.push_back(port.name);
    for (size_t i = 0; i < input_names_.size(); ++i)
      updated_.push_back(ingot_engine_input_is_updated(engine_.handle(), i) != 0);
  }

  // Runs the engine on its tensor inputs, in order; the results own their memory. Inputs are only read, in
  // place if they are dense, and must stay valid until the call returns. UserError names the input and dim
  // that do not match the engine (INGOT-U300 to U305), and inputs of const memory that the model updates in
  // place (INGOT-U315).
  std::vector<Tensor> run(std::span<const Tensor> inputs, const RunOptions& options = {}) {
    std::vector<Tensor> outputs;
    run(inputs, outputs, options);
    return outputs;
  }
  std::vector<Tensor> run(std::initializer_list<Tensor> inputs, const RunOptions& options = {}) {
    return run(std::span<const Tensor>(inputs.begin(), inputs.size()), options);
  }

  // The same by name: run({{"input_ids", ids}, {"mask", mask}}).at("logits"). UserError INGOT-U318 for an
  // unknown or missing name.
  NamedTensors run(const NamedTensors& inputs, const RunOptions& options = {}) {
    std::vector<const char*> names;
    std::vector<Tensor> values, outputs;
    for (const auto& [name, value] : inputs) {
      const auto position = std::find(input_names_.begin(), input_names_.end(), name) - input_names_.begin();
      if (position < std::ssize(input_names_)) require_writable(static_cast<size_t>(position), value);
      names.push_back(name.c_str());
      values.push_back(value);
    }
    start(names.data(), values, Into{outputs}, options);
    NamedTensors results;
    for (size_t i = 0; i < outputs.size(); ++i) results.emplace(output_names_[i], std::move(outputs[i]));
    return results;
  }

  // Stores the results in `outputs` and reuses the memory that those tensors own, so that consecutive runs of
  // the same shape do not allocate.
  void run(std::span<const Tensor> inputs, std::vector<Tensor>& outputs, const RunOptions& options = {}) {
    run_with(inputs, Into{outputs}, options);
  }

  // Stores results in memory of the caller: `allocate(index, dtype, shape, bytes)` returns a void*, 64-byte
  // aligned for best speed, or nullptr (DeviceError INGOT-D302). Its exceptions propagate to the caller.
  template <typename Allocate>
  void run_with(std::span<const Tensor> inputs, Allocate&& allocate, const RunOptions& options = {}) {
    for (size_t i = 0; i < std::min(inputs.size(), updated_.size()); ++i) require_writable(i, inputs[i]);
    start(nullptr, inputs, allocate, options);
  }

  // Sizes of the outputs for inputs of these sizes, one vector per output in order, without running; -1 if
  // only a run can determine them. Reads only dtypes and sizes of the inputs. Errors like those of `run`.
  std::vector<std::vector<int64_t>> output_shapes(std::span<const Tensor> inputs) {
    view(inputs);
    size_t length = 0;
    std::vector<int64_t> sizes(kUsualDims);
    const auto ask = [&] {
      detail::check(ingot_context_output_shapes(handle(), views_.size(), views_.data(), sizes.data(),
                                                sizes.size(), &length));
    };
    ask();
    if (length > sizes.size()) {
      sizes.resize(length);
      ask();
    }
    std::vector<std::vector<int64_t>> shapes;
    const int64_t* next = sizes.data();
    for (const Port& port : engine_.outputs()) {
      shapes.emplace_back(next, next + port.dims.size());
      next += port.dims.size();
    }
    return shapes;
  }

  // Binds state `index` (of `Engine::states`) to memory of the caller, which runs then read and update in
  // place: dense row-major, with the state's dtype and sizes, valid while bound. Null: to memory of the
  // context, which starts with the engine's initial value. UserError INGOT-U307 if there is no such state.
  void bind_state(size_t index, void* data) {
    detail::check(ingot_context_bind_state(handle(), index, data));
  }
  // Resets the context's own states to their initial values; bound ones are unchanged.
  void reset_states() { detail::check(ingot_context_reset_states(handle())); }
  // Copies the values of another context's states into this context's own states. Both contexts must be of
  // the same engine or a copy of it, and neither may be running. UserError INGOT-U307 if the sizes differ, or
  // only one of the contexts has a state bound.
  void copy_states(const Context& other) {
    detail::check(ingot_context_copy_states(handle(), other.handle()));
  }
  // Exchanges own states with another context, which keep their values and addresses. `other` may be of
  // another engine of the same model, built with other options. UserError INGOT-U307 as above.
  void take_states(Context& other) { detail::check(ingot_context_take_states(handle(), other.handle())); }

  // Bytes that the context holds (`weights`: those of its engine), and the number of shapes with cached
  // plans.
  ingot_memory memory() const {
    ingot_memory memory{};
    memory.struct_size = sizeof(memory);
    detail::check(ingot_context_memory(handle(), &memory));
    return memory;
  }

  // Starts timing each step of later runs (discarding earlier times), or stops. Off by default: then nothing
  // is measured.
  void set_profiling(bool on) { detail::check(ingot_context_set_profiling(handle(), on ? 1 : 0)); }
  // Measurements since the sizes of the inputs last changed, as JSON: times in nanoseconds, see
  // ingot_context_profile. UserError INGOT-U340 if there are none.
  std::string profile() const {
    ingot_text* json = nullptr;
    detail::check(ingot_context_profile(handle(), &json));
    return detail::take_text(json);
  }

  // Threads that the next run uses, the calling one included.
  int threads() const { return ingot_context_threads(handle()); }
  const Engine& engine() const { return engine_; }
  ingot_context* handle() const { return handle_.get(); }  // of the C API, still owned by this object

 private:
  static constexpr size_t kUsualDims = 64, kAlignment = 64;

  static ingot_allocator allocator_of(std::pmr::memory_resource* memory) {
    const auto allocate = [](void* user, size_t bytes, size_t alignment) -> void* {
      try {
        return static_cast<std::pmr::memory_resource*>(user)->allocate(bytes, alignment);
      } catch (...) {  // exceptions must not cross the C API; reported as INGOT-D303
        return nullptr;
      }
    };
    const auto release = [](void* user, void* data, size_t bytes) {
      static_cast<std::pmr::memory_resource*>(user)->deallocate(data, bytes, kAlignment);
    };
    return {allocate, release, memory};
  }

  // Reuses the memory of `outputs`.
  struct Into {
    std::vector<Tensor>& outputs;
    void* operator()(size_t index, DType dtype, std::span<const int64_t> shape, size_t bytes) const {
      if (outputs.size() <= index) outputs.resize(index + 1);
      return outputs[index].resize(dtype, shape, bytes);
    }
  };

  static int64_t nanoseconds(std::chrono::steady_clock::time_point deadline) {
    if (deadline == std::chrono::steady_clock::time_point::max()) return 0;
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time_since_epoch());
    return std::max<int64_t>(time.count(), 1);
  }

  template <typename Allocate>
  void start(const char* const* names, std::span<const Tensor> inputs, Allocate&& allocate,
             const RunOptions& options) {
    struct Call {
      std::remove_reference_t<Allocate>& allocate;
      std::exception_ptr failure;
    } call{allocate, nullptr};
    const auto forward = [](void* user, size_t index, int32_t dtype, int32_t rank, const int64_t* shape,
                            size_t bytes) -> void* {
      auto& own = *static_cast<Call*>(user);
      try {
        return own.allocate(index, static_cast<DType>(dtype), {shape, static_cast<size_t>(rank)}, bytes);
      } catch (...) {  // exceptions must not cross the C API
        own.failure = std::current_exception();
        return nullptr;
      }
    };
    view(inputs);
    const ingot_run_options given{sizeof(ingot_run_options),
                                  forward,
                                  &call,
                                  nanoseconds(options.deadline),
                                  options.cancellation == nullptr ? nullptr : options.cancellation->flag(),
                                  0,
                                  nullptr,
                                  options.weights == nullptr ? nullptr : options.weights->handle()};
    ingot_status* status = ingot_context_run_with(handle(), views_.size(), names, views_.data(), &given);
    if (call.failure) {
      ingot_status_free(status);
      std::rethrow_exception(call.failure);
    }
    detail::check(status);
  }

  void view(std::span<const Tensor> inputs) {
    views_.clear();
    for (const Tensor& input : inputs) views_.push_back(input.view());
  }

  void require_writable(size_t index, const Tensor& input) const {
    if (!updated_[index] || !input.is_read_only()) return;
    detail::refuse(
        "INGOT-U315",
        "input '" + input_names_[index] + "': the model updates it in place, but its memory is read-only",
        "pass memory that is not const");
  }

  struct Free {
    void operator()(ingot_context* context) const { ingot_context_free(context); }
  };
  Engine engine_;
  std::unique_ptr<ingot_context, Free> handle_;
  std::vector<std::string> input_names_, output_names_;
  std::vector<bool> updated_;        // per input: whether runs write its memory
  std::vector<ingot_tensor> views_;  // of the current run; kept, so that runs do not allocate
};

// Threads of the process, shared by contexts without their own, the caller included; 0 (the default): what
// affinity and quota allow. Not during a run. UserError INGOT-U002 below 0 or above 1024.
inline void set_threads(int threads) { detail::check(ingot_set_threads(threads)); }
inline int threads() { return ingot_get_threads(); }
// How many GPUs the driver shows; 0 without one.
inline int gpu_count() { return ingot_gpu_count(); }
// Microseconds that idle workers spin before they sleep (default 50); 0: they sleep at once. Not during a
// run. UserError INGOT-U002 below 0 or above 1000000.
inline void set_spin(int microseconds) { detail::check(ingot_set_spin(microseconds)); }

enum class LogLevel : int32_t {
  kOff = INGOT_LOG_OFF,
  kWarning = INGOT_LOG_WARNING,  // something differs from what was asked
  kInfo = INGOT_LOG_INFO,        // opened engines, and the cost of each new shape
};
// Passes messages of the process up to `level` to `log`, which must not throw; null: to nobody. Initially
// messages are dropped, or go to stderr if the environment variable INGOT_LOG is "warning" or "info".
inline void set_logger(void (*log)(LogLevel level, std::string_view message), LogLevel level) {
  const auto forward = [](void* user, int32_t at, const char* message) {
    reinterpret_cast<void (*)(LogLevel, std::string_view)>(user)(static_cast<LogLevel>(at), message);
  };
  detail::check(ingot_set_logger(log == nullptr ? nullptr : +forward, reinterpret_cast<void*>(log),
                                 static_cast<int32_t>(level)));
}

}  // namespace ingot

#endif  // INGOT_HAS_CPP20
