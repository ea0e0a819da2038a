// SPDX-License-Identifier: Apache-2.0
// Contexts: what one thread needs to run an engine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ingot/engine.h"
#include "ingot/error.h"
#include "ingot/tensor.h"

namespace ingot {

// Cheap; one per thread. Two runs of one context must not overlap. Keeps its engine alive.
class Context {
 public:
  explicit Context(Engine engine) : engine_(std::move(engine)) {
    ingot_context* context = nullptr;
    detail::check(ingot_context_create(engine_.handle(), &context));
    handle_.reset(context);
    updated_.resize(ingot_engine_input_count(engine_.handle()));
    for (size_t i = 0; i < updated_.size(); ++i)
      updated_[i] = ingot_engine_input_is_updated(engine_.handle(), i) != 0;
  }

  // Runs the engine on its tensor inputs, in order; the results own their memory. UserError names the input
  // and dim that do not fit the engine, and inputs of const memory that the model updates in place.
  std::vector<Tensor> run(std::span<const Tensor> inputs) {
    std::vector<Tensor> outputs;
    run(inputs, outputs);
    return outputs;
  }
  std::vector<Tensor> run(std::initializer_list<Tensor> inputs) {
    return run(std::span<const Tensor>(inputs.begin(), inputs.size()));
  }

  // Puts the results into `outputs` and takes over the memory that those tensors own, so that runs of one
  // shape after another allocate nothing.
  void run(std::span<const Tensor> inputs, std::vector<Tensor>& outputs) {
    run_with(inputs, [&outputs](size_t index, DType dtype, std::span<const int64_t> shape, size_t bytes) {
      if (outputs.size() <= index) outputs.resize(index + 1);
      return outputs[index].resize(dtype, shape, bytes);
    });
  }

  // Results go to memory of the caller: `allocate(index, dtype, shape, bytes)` returns a void*, 64-byte
  // aligned for the best speed, or nullptr (DeviceError). What it throws comes out of this call.
  template <typename Allocate>
  void run_with(std::span<const Tensor> inputs, Allocate&& allocate) {
    struct Call {
      std::remove_reference_t<Allocate>& allocate;
      std::exception_ptr failure;
    } call{allocate, nullptr};
    const auto forward = [](void* user, size_t index, int32_t dtype, int32_t rank, const int64_t* shape,
                            size_t bytes) -> void* {
      auto& own = *static_cast<Call*>(user);
      try {
        return own.allocate(index, static_cast<DType>(dtype), {shape, static_cast<size_t>(rank)}, bytes);
      } catch (...) {  // no exception may cross the C API
        own.failure = std::current_exception();
        return nullptr;
      }
    };
    require_writable(inputs);
    view(inputs);
    ingot_status* status = ingot_context_run(handle(), views_.size(), views_.data(), forward, &call);
    if (call.failure) {
      ingot_status_free(status);
      std::rethrow_exception(call.failure);
    }
    detail::check(status);
  }

  // Sizes of the outputs for inputs of these sizes, without running; -1 where only a run can tell.
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

  // Binds state `index` to memory of the caller, which runs then update in place; null: to memory of the
  // context, which starts with the engine's initial value.
  void bind_state(size_t index, void* data) {
    detail::check(ingot_context_bind_state(handle(), index, data));
  }
  // The context's own states get their initial value again.
  void reset_states() { detail::check(ingot_context_reset_states(handle())); }
  // They get the values that those of another context have, of the same engine or of a copy of it.
  void copy_states(const Context& other) {
    detail::check(ingot_context_copy_states(handle(), other.handle()));
  }

  // Bytes that the context holds (of `weights`: its engine), and the number of shapes that it has plans for.
  ingot_memory memory() const {
    ingot_memory memory{};
    memory.struct_size = sizeof(memory);
    detail::check(ingot_context_memory(handle(), &memory));
    return memory;
  }

  // Times each step of the runs from now on (begins anew), or stops. Off, as contexts start, nothing is
  // measured.
  void set_profiling(bool on) { detail::check(ingot_context_set_profiling(handle(), on ? 1 : 0)); }
  // What was measured since the sizes of the inputs last changed, as JSON (see ingot_context_profile).
  std::string profile() const {
    ingot_text* json = nullptr;
    detail::check(ingot_context_profile(handle(), &json));
    return detail::take_text(json);
  }

  const Engine& engine() const { return engine_; }
  ingot_context* handle() const { return handle_.get(); }  // of the C API, still owned by this object

 private:
  static constexpr size_t kUsualDims = 64;

  void view(std::span<const Tensor> inputs) {
    views_.clear();
    for (const Tensor& input : inputs) views_.push_back(input.view());
  }

  void require_writable(std::span<const Tensor> inputs) const {
    for (size_t i = 0; i < std::min(inputs.size(), updated_.size()); ++i) {
      if (!updated_[i] || !inputs[i].is_read_only()) continue;
      detail::refuse("INGOT-U315",
                     "input '" + engine_.inputs()[i].name +
                         "': the model updates it in place, but its memory is read-only",
                     "give it memory that is not const");
    }
  }

  struct Free {
    void operator()(ingot_context* context) const { ingot_context_free(context); }
  };
  Engine engine_;
  std::unique_ptr<ingot_context, Free> handle_;
  std::vector<bool> updated_;        // of each input: whether runs write its memory
  std::vector<ingot_tensor> views_;  // of the run in progress; kept, so that runs allocate nothing
};

// Threads of all runs of this process, the caller included; 0 (the default): what affinity and quota allow.
// Not while a run is in flight.
inline void set_threads(int threads) { detail::check(ingot_set_threads(threads)); }
inline int threads() { return ingot_get_threads(); }
// Microseconds that idle workers spin before they sleep (default 50); 0 leaves the processor to others at
// once.
inline void set_spin(int microseconds) { detail::check(ingot_set_spin(microseconds)); }

}  // namespace ingot
