// SPDX-License-Identifier: Apache-2.0
#include "types/tensor.h"

#include <cstring>
#include <new>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/error.h"
#include "support/text.h"

namespace ingot::core {
namespace {

constexpr std::align_val_t kAlignment{64};

[[noreturn]] void too_large() {
  throw UserError("INGOT-U101", "a tensor's size overflows 64 bits", "use smaller shapes");
}

int64_t multiply(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) too_large();
  return result;
}

int64_t count(std::span<const int64_t> shape) {
  int64_t total = 1;
  for (const int64_t extent : shape) {
    invariant(extent >= 0, "the size of a tensor is negative");
    total = multiply(total, extent);
  }
  return total;
}

size_t dense_bytes(DType dtype, std::span<const int64_t> shape) {
  count(shape);  // rejects negative sizes and overflow
  const int64_t row = shape.empty() ? 1 : shape.back();
  const int64_t rows = shape.empty() ? 1 : count(shape.first(shape.size() - 1));
  if (multiply(row, bit_width(dtype)) > INT64_MAX - 7) too_large();
  return static_cast<size_t>(multiply(rows, row_bytes(dtype, row)));
}

// Copies one innermost row, element by element, and returns the next free byte.
class DenseWriter {
 public:
  DenseWriter(const TensorView& source, std::byte* target) : source_(source), target_(target) {
    if (!source.shape.empty()) inner_ = source.shape.back();
    if (!source.shape.empty()) inner_stride_ = source.strides.back();
  }

  void copy(size_t axis, int64_t offset) {
    if (axis + 1 >= source_.shape.size()) return copy_row(offset);
    for (int64_t i = 0; i < source_.shape[axis]; ++i) copy(axis + 1, offset + i * source_.strides[axis]);
  }

 private:
  void copy_row(int64_t offset) {
    const int bits = bit_width(source_.dtype);
    if (bits < 8) return copy_nibbles(offset);
    const auto size = static_cast<size_t>(bits / 8);
    const auto bytes = static_cast<int64_t>(size);
    if (inner_stride_ == 1) {
      std::memcpy(target_, source_.data + offset * bytes, size * static_cast<size_t>(inner_));
    } else {
      for (int64_t i = 0; i < inner_; ++i) {
        std::memcpy(target_ + i * bytes, source_.data + (offset + i * inner_stride_) * bytes, size);
      }
    }
    target_ += row_bytes(source_.dtype, inner_);
  }

  void copy_nibbles(int64_t offset) {
    std::memset(target_, 0, static_cast<size_t>(row_bytes(source_.dtype, inner_)));
    for (int64_t i = 0; i < inner_; ++i) {
      const int64_t from = offset + i * inner_stride_;
      const std::byte nibble = (source_.data[from >> 1] >> ((from & 1) * 4)) & std::byte{0xF};
      target_[i >> 1] |= nibble << ((i & 1) * 4);
    }
    target_ += row_bytes(source_.dtype, inner_);
  }

  const TensorView& source_;
  std::byte* target_;
  int64_t inner_ = 1;
  int64_t inner_stride_ = 1;
};

}  // namespace

int64_t Tensor::elements() const { return count(shape); }

size_t Tensor::bytes() const { return dense_bytes(dtype, shape); }

TensorView Tensor::view() const {
  std::vector<int64_t> storage = shape;
  // A row of 4-bit elements starts at a byte boundary.
  if (bit_width(dtype) < 8 && !storage.empty()) storage.back() = row_bytes(dtype, shape.back()) * 2;
  return {data.get(), dtype, shape, row_major_strides(storage)};
}

namespace {

Tensor allocate_tensor(DType dtype, std::vector<int64_t> shape) {
  const size_t bytes = dense_bytes(dtype, shape);
  auto* memory = static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow));
  if (memory == nullptr) {
    throw DeviceError("INGOT-D004", fmt::format("out of memory for a tensor of {}", format_bytes(bytes)));
  }
  std::shared_ptr<std::byte> data(memory, [](std::byte* block) { ::operator delete(block, kAlignment); });
  return {std::move(data), dtype, std::move(shape)};
}

}  // namespace

Tensor make_tensor(DType dtype, std::vector<int64_t> shape) {
  Tensor result = allocate_tensor(dtype, std::move(shape));
  std::memset(result.data.get(), 0, result.bytes());
  return result;
}

void copy_dense(const TensorView& view, std::byte* target) {
  if (count(view.shape) != 0) DenseWriter(view, target).copy(0, 0);
}

ViewKey key_of(const TensorView& view) { return {view.data, view.dtype, view.shape, view.strides}; }

bool is_dense(const TensorView& view) {
  return bit_width(view.dtype) >= 8 && view.strides == row_major_strides(view.shape);
}

std::string to_string(DType dtype, std::span<const int64_t> shape) {
  return fmt::format("{}[{}]", name(dtype), fmt::join(shape, ","));
}

Tensor to_dense(const TensorView& view) {
  Tensor result = allocate_tensor(view.dtype, view.shape);
  copy_dense(view, result.data.get());
  return result;
}

std::vector<int64_t> row_major_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride = multiply(stride, shape[axis]);
  }
  return strides;
}

}  // namespace ingot::core
