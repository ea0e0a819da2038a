// SPDX-License-Identifier: Apache-2.0
// Tensors of files, for refits.
#include "api/runtime/named_tensors.h"

#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "importers/safetensors/checkpoint.h"
#include "support/paths.h"

using namespace ingot::core;

ingot_tensors::ingot_tensors(std::vector<NamedTensor> content) : tensors(std::move(content)) {
  for (const NamedTensor& tensor : tensors)
    values.push_back({.data = tensor.value.view.data,
                      .dtype = static_cast<int32_t>(tensor.value.view.dtype),
                      .rank = static_cast<int32_t>(tensor.value.view.shape.size()),
                      .shape = tensor.value.view.shape.data(),
                      .strides = tensor.value.view.strides.data(),
                      .device_type = INGOT_DEVICE_CPU,
                      .device_id = 0,
                      .byte_offset = 0});
}

extern "C" {

ingot_status* ingot_open_tensors(const char* path, ingot_tensors** tensors) {
  return api::guard([&] {
    api::require(path, "path");
    api::require(tensors, "tensors");
    *tensors = new ingot_tensors(read_checkpoint(to_path(path)));
  });
}

void ingot_tensors_free(ingot_tensors* tensors) { delete tensors; }

size_t ingot_tensors_count(const ingot_tensors* tensors) {
  return tensors == nullptr ? 0 : tensors->tensors.size();
}

const char* ingot_tensors_name(const ingot_tensors* tensors, size_t index) {
  return index < ingot_tensors_count(tensors) ? tensors->tensors[index].name.c_str() : nullptr;
}

const ingot_tensor* ingot_tensors_value(const ingot_tensors* tensors, size_t index) {
  return index < ingot_tensors_count(tensors) ? &tensors->values[index] : nullptr;
}

}  // extern "C"
