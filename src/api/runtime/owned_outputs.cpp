// SPDX-License-Identifier: Apache-2.0
// Runs whose outputs are in memory of the library, each in one block: ingot_tensor, shape, values.
#include <algorithm>
#include <span>

#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "ingot/ingot.h"
#include "support/error.h"
#include "support/system_memory.h"

using namespace ingot::core;

namespace {

constexpr size_t kOutputAlignment = 64;  // bytes, of a block and of its values

size_t round_up_to_alignment(size_t bytes) {
  return (bytes + kOutputAlignment - 1) / kOutputAlignment * kOutputAlignment;
}

void free_outputs(std::span<ingot_tensor*> outputs) {
  for (ingot_tensor*& output : outputs) {
    ingot_tensor_free(output);
    output = nullptr;
  }
}

void* allocate_owned(void* user, size_t index, int32_t dtype, int32_t rank, const int64_t* shape,
                     size_t bytes) {
  const auto axes = static_cast<size_t>(rank);
  const size_t head = round_up_to_alignment(sizeof(ingot_tensor) + axes * sizeof(int64_t));
  if (bytes > SIZE_MAX - head - kOutputAlignment) return nullptr;
  void* block = allocate_aligned(round_up_to_alignment(head + bytes), kOutputAlignment);
  if (block == nullptr) return nullptr;
  auto* sizes = reinterpret_cast<int64_t*>(static_cast<std::byte*>(block) + sizeof(ingot_tensor));
  std::copy_n(shape, axes, sizes);
  auto* tensor = new (block) ingot_tensor{.data = static_cast<std::byte*>(block) + head,
                                          .dtype = dtype,
                                          .rank = rank,
                                          .shape = sizes,
                                          .strides = nullptr,
                                          .device_type = INGOT_DEVICE_CPU,
                                          .device_id = 0,
                                          .byte_offset = 0};
  static_cast<ingot_tensor**>(user)[index] = tensor;
  return tensor->data;
}

}  // namespace

extern "C" {

ingot_status* ingot_context_run_owned(ingot_context* context, size_t count, const char* const* names,
                                      const ingot_tensor* inputs, const ingot_run_options* options,
                                      ingot_tensor** outputs) {
  ingot_run_options own{};
  std::span<ingot_tensor*> results;
  ingot_status* refused = api::guard([&] {
    api::require(context, "context");
    api::require(outputs, "outputs");
    if (options != nullptr) {
      own =
          api::read_struct(options, offsetof(ingot_run_options, cancel) + sizeof(void*), "ingot_run_options");
    }
    if (own.allocate != nullptr || own.outputs_on_device != 0)
      throw UserError("INGOT-U002", "ingot_context_run_owned allocates the outputs, in host memory",
                      "leave out allocate and outputs_on_device, or use ingot_context_run_with");
    results = {outputs, context->context.engine().data().main.outputs.size()};
    std::ranges::fill(results, nullptr);
    own.struct_size = sizeof(own);
    own.allocate = allocate_owned;
    own.user = outputs;
  });
  if (refused != nullptr) return refused;
  ingot_status* failed = ingot_context_run_with(context, count, names, inputs, &own);
  if (failed != nullptr) free_outputs(results);
  return failed;
}

void ingot_tensor_free(ingot_tensor* tensor) { release_aligned(tensor); }

}  // extern "C"
