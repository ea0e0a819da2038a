// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/tensors.h"

#include <span>

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core::api {
namespace {

[[noreturn]] void refuse_device(const ingot_tensor& tensor) {
  throw UnsupportedError(
      "INGOT-N301",
      fmt::format("a tensor is on device {}:{}, but only runs take tensors outside of host memory, and only "
                  "of GPUs",
                  tensor.device_type, tensor.device_id),
      "copy it to the host; a tensor in host memory has device_type 0 or 1 and device_id 0");
}

}  // namespace

Argument to_argument(const ingot_tensor& tensor) {
  if (tensor.rank < 0) [[unlikely]]
    throw UserError("INGOT-U016", fmt::format("a tensor has {} dims", tensor.rank));
  if (tensor.rank > 0) require(tensor.shape, "shape");
  const bool on_device = tensor.device_type == INGOT_DEVICE_CUDA;
  const bool is_host = tensor.device_type == INGOT_DEVICE_HOST || tensor.device_type == INGOT_DEVICE_CPU;
  if ((!is_host && !on_device) || (is_host && tensor.device_id != 0)) [[unlikely]]
    refuse_device(tensor);
  if (tensor.data == nullptr) [[unlikely]] {
    const std::span shape(tensor.shape, static_cast<size_t>(tensor.rank));
    if (std::ranges::find(shape, 0) == shape.end()) require(tensor.data, "data");
  }
  auto* data = static_cast<std::byte*>(tensor.data);
  auto* first = data == nullptr ? nullptr : data + tensor.byte_offset;
  return {first,     to_dtype(tensor.dtype), tensor.rank, tensor.shape, tensor.strides,
          on_device, tensor.device_id};
}

TensorView to_view(const ingot_tensor& tensor) {
  const Argument argument = to_argument(tensor);
  if (argument.on_device) refuse_device(tensor);
  if (argument.strides != nullptr) return view_of(argument);
  std::vector<int64_t> shape(argument.shape, argument.shape + argument.rank);
  std::vector<int64_t> strides = row_major_strides(shape);
  return {static_cast<std::byte*>(argument.data), argument.dtype, std::move(shape), std::move(strides)};
}

}  // namespace ingot::core::api
