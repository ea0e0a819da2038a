// SPDX-License-Identifier: Apache-2.0
// Contexts and runs. ingot_context_run allocates nothing of its own after the first call.
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "api/runtime/tensors.h"

using namespace ingot::core;

namespace {

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

size_t held_bytes(const Engine& engine) {
  const std::shared_ptr<const WeightSet> weights = engine.weights();
  size_t bytes = 0;
  for (size_t id = 0; id < weights->data.size(); ++id) {
    if (weights->data[id] != nullptr) bytes += engine.data().weights[id].bytes;
  }
  return bytes;
}

}  // namespace

extern "C" {

ingot_status* ingot_context_create(ingot_engine* engine, ingot_context** context) {
  return api::guard([&] {
    api::require(engine, "engine");
    api::require(context, "context");
    api::require_unchanged_model(*engine);
    *context = new ingot_context(api::runnable(*engine));
  });
}

void ingot_context_free(ingot_context* context) { delete context; }

ingot_status* ingot_context_run(ingot_context* context, size_t count, const ingot_tensor* inputs,
                                ingot_allocate allocate, void* user) {
  return api::guard([&] {
    api::require(context, "context");
    api::require(reinterpret_cast<const void*>(allocate), "allocate");
    Caller caller{allocate, user};
    context->context.run(read_inputs(*context, count, inputs), {allocate_output, &caller});
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

ingot_status* ingot_context_memory(const ingot_context* context, ingot_memory* memory) {
  return api::guard([&] {
    api::require(context, "context");
    const Context::Memory used = context->context.memory();
    const ingot_memory filled{.struct_size = 0,
                              .arena = used.arena,
                              .states = used.states,
                              .scratch = used.scratch,
                              .weights = held_bytes(context->context.engine()),
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

ingot_status* ingot_context_profile(ingot_context* context, ingot_text** json) {
  return api::guard([&] {
    api::require(context, "context");
    api::require(json, "json");
    *json = api::make_text(context->context.profile());
  });
}

}  // extern "C"
