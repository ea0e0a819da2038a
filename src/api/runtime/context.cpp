// SPDX-License-Identifier: Apache-2.0
// Contexts and runs. Runs allocate nothing of their own after the first one.
#include <algorithm>

#include <fmt/core.h>

#include "api/runtime/groups.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "api/runtime/host_access.h"
#include "api/runtime/tensors.h"
#include "support/error.h"

using namespace ingot::core;

namespace {

constexpr size_t kFirstContextOptions = offsetof(ingot_context_options, allocator) + sizeof(void*);
constexpr size_t kFirstRunOptions = offsetof(ingot_run_options, cancel) + sizeof(void*);
constexpr size_t kFirstMemory = offsetof(ingot_memory, cached_plans) + sizeof(size_t);

struct Caller {
  ingot_allocate allocate;
  void* user;
};

void* allocate_output(void* context, size_t index, DType dtype, std::span<const int64_t> shape,
                      size_t bytes) {
  const auto& caller = *static_cast<const Caller*>(context);
  return caller.allocate(caller.user, index, static_cast<int32_t>(dtype), static_cast<int32_t>(shape.size()),
                         shape.data(), bytes);
}

std::span<const Argument> read_inputs(ingot_context& context, size_t count, const ingot_tensor* inputs) {
  if (count > 0) api::require(inputs, "inputs");
  context.arguments.clear();
  for (size_t i = 0; i < count; ++i) context.arguments.push_back(api::to_argument(inputs[i]));
  return context.arguments;
}

ContextOptions read_context_options(const ingot_context_options* given, const EngineData& data) {
  if (given == nullptr) return {.threads = 0, .allocator = {}, .groups = api::find_groups(data, {})};
  const auto options = api::read_struct(given, kFirstContextOptions, "ingot_context_options");
  api::require_range(options.threads, api::kMostThreads, "the number of threads");
  if (options.group_count > 0) api::require(options.groups, "groups");
  api::require_range(options.check_indices, INGOT_CHECK_INDICES_SYNC, "check_indices");
  ContextOptions result{.threads = options.threads,
                        .allocator = {},
                        .groups = {},
                        .checks_at_once = options.check_indices == INGOT_CHECK_INDICES_SYNC,
                        .uses_graphs = options.without_cuda_graphs == 0};
  if (options.allocator != nullptr) {
    const ingot_allocator& allocator = *options.allocator;
    api::require(reinterpret_cast<const void*>(allocator.allocate), "allocator.allocate");
    api::require(reinterpret_cast<const void*>(allocator.release), "allocator.release");
    result.allocator = {allocator.allocate, allocator.release, allocator.user};
  }
  result.groups = api::find_groups(data, {options.groups, options.group_count});
  return result;
}

// Puts the inputs into the order of the engine.
std::span<const Argument> read_named_inputs(ingot_context& context, size_t count, const char* const* names,
                                            const ingot_tensor* inputs) {
  if (count > 0) api::require(inputs, "inputs");
  context.arguments.resize(context.inputs.size());
  context.given.assign(context.inputs.size(), false);
  for (size_t i = 0; i < count; ++i) {
    api::require(names[i], "names");
    const size_t index = api::find_name(context.inputs, names[i], "input");
    if (context.given[index])
      throw UserError("INGOT-U318", fmt::format("input '{}' is given twice", names[i]));
    context.given[index] = true;
    context.arguments[index] = api::to_argument(inputs[i]);
  }
  const auto missing = std::ranges::find(context.given, false);
  if (missing != context.given.end())
    throw UserError("INGOT-U318",
                    fmt::format("input '{}' is missing",
                                context.inputs[static_cast<size_t>(missing - context.given.begin())]));
  return context.arguments;
}

void show_value(void* user, size_t step, const std::string& name, const Tensor& value) {
  const auto& context = *static_cast<const ingot_context*>(user);
  const ingot_tensor shown{.data = value.data.get(),
                           .dtype = static_cast<int32_t>(value.dtype),
                           .rank = static_cast<int32_t>(value.shape.size()),
                           .shape = value.shape.data(),
                           .strides = nullptr,
                           .device_type = INGOT_DEVICE_CPU,
                           .device_id = 0,
                           .byte_offset = 0};
  context.observe(context.observe_user, step, name.c_str(), &shown);
}

// Runs `function` and counts the call and its error.
template <typename Function>
ingot_status* guard_call(ingot_context* context, Function&& function) noexcept {
  if (context != nullptr) [[likely]]
    context->counters.calls.add();
  ingot_status* status = api::guard(function);
  if (status != nullptr && context != nullptr) [[unlikely]]
    context->context.count_error(ingot_status_code(status));
  return status;
}

}  // namespace

extern "C" {

ingot_status* ingot_context_create_with(ingot_engine* engine, const ingot_context_options* options,
                                        ingot_context** context) {
  return api::guard([&] {
    api::require(engine, "engine");
    api::require(context, "context");
    api::require_unchanged_model(*engine);
    const std::shared_ptr<Engine>& runnable = api::runnable(*engine);
    const ContextOptions given = read_context_options(options, *engine->data);  // last: waits for other ranks
    *context = new ingot_context(runnable, given);
  });
}

ingot_status* ingot_context_create(ingot_engine* engine, ingot_context** context) {
  return ingot_context_create_with(engine, nullptr, context);
}

int32_t ingot_context_threads(const ingot_context* context) {
  return context == nullptr ? 0 : context->context.threads();
}

int32_t ingot_context_is_usable(const ingot_context* context) {
  return context != nullptr && context->context.is_usable() ? 1 : 0;
}

void ingot_context_free(ingot_context* context) { delete context; }

ingot_status* ingot_context_run(ingot_context* context, size_t count, const ingot_tensor* inputs,
                                ingot_allocate allocate, void* user) {
  return guard_call(context, [&] {
    api::require(context, "context");
    api::require(reinterpret_cast<const void*>(allocate), "allocate");
    Caller caller{allocate, user};
    context->context.run(read_inputs(*context, count, inputs), {allocate_output, &caller});
  });
}

ingot_status* ingot_context_run_with(ingot_context* context, size_t count, const char* const* names,
                                     const ingot_tensor* inputs, const ingot_run_options* options) {
  return guard_call(context, [&] {
    api::require(context, "context");
    const auto given = api::read_struct(options, kFirstRunOptions, "ingot_run_options");
    api::require(reinterpret_cast<const void*>(given.allocate), "allocate");
    Caller caller{given.allocate, given.user};
    const auto arguments = names == nullptr ? read_inputs(*context, count, inputs)
                                            : read_named_inputs(*context, count, names, inputs);
    context->context.run(
        arguments, {allocate_output, &caller, given.outputs_on_device != 0},
        {.limits = {.deadline_ns = given.deadline_ns, .cancel = given.cancel},
         .stream = given.stream,
         .weights = given.weights == nullptr ? nullptr : api::runnable(*given.weights).get()});
  });
}

ingot_status* ingot_context_synchronize(ingot_context* context) {
  return api::guard([&] {
    api::require(context, "context");
    context->context.synchronize();
  });
}

ingot_status* ingot_context_output_shapes(ingot_context* context, size_t count, const ingot_tensor* inputs,
                                          int64_t* shapes, size_t capacity, size_t* length) {
  return api::guard([&] {
    api::require(context, "context");
    api::require(length, "length");
    if (capacity > 0) api::require(shapes, "shapes");
    *length = 0;
    for (const auto& shape : context->context.output_shapes(read_inputs(*context, count, inputs))) {
      for (const int64_t size : shape) {
        if (*length < capacity) shapes[*length] = size;
        ++*length;
      }
    }
  });
}

ingot_status* ingot_context_bind_state(ingot_context* context, size_t index, void* data) {
  return api::guard([&] {
    api::require(context, "context");
    context->context.bind_state(index, data);
  });
}

ingot_status* ingot_context_reset_states(ingot_context* context) {
  return api::guard([&] {
    api::require(context, "context");
    context->context.reset_states();
  });
}

ingot_status* ingot_context_copy_states(ingot_context* context, const ingot_context* from) {
  return api::guard([&] {
    api::require(context, "context");
    api::require(from, "from");
    context->context.copy_states(from->context);
  });
}

ingot_status* ingot_context_take_states(ingot_context* context, ingot_context* from) {
  return api::guard([&] {
    api::require(context, "context");
    api::require(from, "from");
    context->context.take_states(from->context);
  });
}

ingot_status* ingot_context_memory(const ingot_context* context, ingot_memory* memory) {
  return api::guard([&] {
    api::require(context, "context");
    const Context::Memory used = context->context.memory();
    const ingot_memory filled{.struct_size = 0,
                              .arena = used.arena,
                              .states = used.states,
                              .scratch = used.scratch,
                              .weights = api::held_bytes(context->context.engine()),
                              .cached_plans = used.cached_plans};
    api::write_struct(memory, filled, kFirstMemory, "ingot_memory");
  });
}

ingot_status* ingot_context_set_profiling(ingot_context* context, int32_t on) {
  return api::guard([&] {
    api::require(context, "context");
    context->context.set_profiling(on != 0);
  });
}

ingot_status* ingot_context_set_observer(ingot_context* context, ingot_observe observe, void* user) {
  return api::guard([&] {
    api::require(context, "context");
    context->observe = observe;
    context->observe_user = user;
    context->observer = {show_value, context};
    context->context.set_observer(observe != nullptr ? &context->observer : nullptr);
  });
}

ingot_status* ingot_context_profile(ingot_context* context, ingot_text** json) {
  return api::guard([&] {
    api::require(context, "context");
    api::require(json, "json");
    *json = api::make_text(context->context.profile());
  });
}

}  // extern "C"
