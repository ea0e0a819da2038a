// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/tensors.h"

#include <algorithm>
#include <cstdint>
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

// Whether the addresses of all elements are in a process's half of 64 bits. Sizes are compared with the
// model's later.
bool has_addresses(const ingot_tensor& tensor, int64_t element_bytes) {
  const std::span shape(tensor.shape, static_cast<size_t>(tensor.rank));
  int64_t first, limit;
  if (__builtin_add_overflow(reinterpret_cast<uintptr_t>(tensor.data), tensor.byte_offset, &first))
    return false;
  if (std::ranges::any_of(shape, [](int64_t size) { return size <= 0; })) return true;
  int64_t below = 0, above = element_bytes, dense = element_bytes, steps, bytes;
  for (size_t i = shape.size(); i-- > 0;) {
    if (tensor.strides == nullptr) {
      if (__builtin_mul_overflow(dense, shape[i], &dense)) return false;
      above = dense;
    } else {
      if (__builtin_mul_overflow(shape[i] - 1, tensor.strides[i], &steps)) return false;
      if (__builtin_mul_overflow(steps, element_bytes, &bytes)) return false;
      if (int64_t& end = bytes < 0 ? below : above; __builtin_add_overflow(end, bytes, &end)) return false;
    }
  }
  return !__builtin_add_overflow(first, above, &limit) && first + below >= 0;
}

[[noreturn]] void refuse_addresses() {
  throw UserError("INGOT-U101", "the addresses of a tensor's elements overflow 64 bits",
                  "check its shape, strides and byte_offset");
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
  const DType dtype = to_dtype(tensor.dtype);
  if (!has_addresses(tensor, std::max(1, bit_width(dtype) / 8))) [[unlikely]]
    refuse_addresses();
  auto* data = static_cast<std::byte*>(tensor.data);
  auto* first = data == nullptr ? nullptr : data + tensor.byte_offset;
  return {first, dtype, tensor.rank, tensor.shape, tensor.strides, on_device, tensor.device_id};
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
