// SPDX-License-Identifier: Apache-2.0
// Tensors in host memory, the inputs and outputs of engines.
#pragma once

#include "ingot/require_cpp20.h"
#if INGOT_HAS_CPP20

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ingot/error.h"
#include "ingot/half.h"
#include "ingot/ingot.h"

namespace ingot {

// Element types, with the values of ingot_dtype. kI4 and kU4 are stored two to a byte, low nibble first.
enum class DType : int32_t {
  kBool = INGOT_BOOL,
  kU8 = INGOT_U8,
  kI8 = INGOT_I8,
  kI16 = INGOT_I16,
  kI32 = INGOT_I32,
  kI64 = INGOT_I64,
  kF16 = INGOT_F16,
  kBF16 = INGOT_BF16,
  kF32 = INGOT_F32,
  kF64 = INGOT_F64,
  kU16 = INGOT_U16,
  kU32 = INGOT_U32,
  kU64 = INGOT_U64,
  kE4M3 = INGOT_E4M3,
  kE5M2 = INGOT_E5M2,
  kI4 = INGOT_I4,
  kU4 = INGOT_U4,
  kC64 = INGOT_C64,
  kC128 = INGOT_C128,
};

// Bits of one element; 0 if it is not a dtype.
constexpr int bit_width(DType dtype) {
  constexpr int kWidths[] = {0, 8, 8, 8, 16, 32, 64, 16, 16, 32, 64, 16, 32, 64, 8, 8, 4, 4, 64, 128};
  const auto index = static_cast<uint32_t>(dtype);
  return index < std::size(kWidths) ? kWidths[index] : 0;
}

// The dtype of a C++ type: dtype_of<float>() is kF32, dtype_of<Float16>() is kF16.
template <typename T>
constexpr DType dtype_of() {
  constexpr auto is_one_of = []<typename... Known>() { return (std::is_same_v<T, Known> || ...); };
  static_assert(is_one_of.template
                operator()<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t,
                           Float16, BFloat16, float, double, std::complex<float>, std::complex<double>>(),
                "this C++ type is not the element type of any dtype");
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::kU8;
  if constexpr (std::is_same_v<T, int8_t>) return DType::kI8;
  if constexpr (std::is_same_v<T, int16_t>) return DType::kI16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::kI32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::kI64;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::kU16;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::kU32;
  if constexpr (std::is_same_v<T, uint64_t>) return DType::kU64;
  if constexpr (std::is_same_v<T, Float16>) return DType::kF16;
  if constexpr (std::is_same_v<T, BFloat16>) return DType::kBF16;
  if constexpr (std::is_same_v<T, float>) return DType::kF32;
  if constexpr (std::is_same_v<T, double>) return DType::kF64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return DType::kC64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return DType::kC128;
}

// A tensor: memory, dtype, sizes and strides. It either borrows memory that the caller keeps alive, or shares
// ownership of its memory. Copies share the memory. UserError INGOT-U019 if sizes, strides or dtypes are
// inconsistent, or do not permit the operation.
class Tensor {
 public:
  Tensor() = default;  // no memory, no dims; also the state of a moved-from tensor
  Tensor(const Tensor&) = default;
  Tensor& operator=(const Tensor&) = default;
  Tensor(Tensor&& other) noexcept { swap(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    Tensor(std::move(other)).swap(*this);
    return *this;
  }

  // Borrows `data`. `strides` count elements; empty means dense row-major. Runs only read an input's memory,
  // unless the model updates that input in place: then it must not be const.
  Tensor(void* data, DType dtype, std::vector<int64_t> shape, std::vector<int64_t> strides = {})
      : data_(data), dtype_(dtype), shape_(std::move(shape)), strides_(std::move(strides)) {
    check_sizes();
  }
  Tensor(const void* data, DType dtype, std::vector<int64_t> shape, std::vector<int64_t> strides = {})
      : Tensor(const_cast<void*>(data), dtype, std::move(shape), std::move(strides)) {
    read_only_ = true;
  }
  Tensor(std::nullptr_t, DType dtype, std::vector<int64_t> shape, std::vector<int64_t> strides = {})
      : Tensor(static_cast<void*>(nullptr), dtype, std::move(shape), std::move(strides)) {}

  // Borrows `values` as a dense tensor of this shape, with as many elements: Tensor(ids, {1, 128}).
  template <typename T>
  Tensor(std::span<T> values, std::vector<int64_t> shape)
      : Tensor(values.data(), dtype_of<std::remove_const_t<T>>(), std::move(shape)) {
    if (elements() == static_cast<int64_t>(values.size())) return;
    refuse("has " + std::to_string(elements()) + " elements, but " + std::to_string(values.size()) +
           " values are given");
  }
  template <typename T>
  Tensor(std::vector<T>& values, std::vector<int64_t> shape)
      : Tensor(std::span<T>(values), std::move(shape)) {}
  template <typename T>
  Tensor(const std::vector<T>& values, std::vector<int64_t> shape)
      : Tensor(std::span<const T>(values), std::move(shape)) {}

  // A dense tensor with its own memory, aligned to 64 bytes and uninitialized. std::bad_alloc if out of
  // memory.
  static Tensor empty(DType dtype, std::vector<int64_t> shape) {
    Tensor tensor(nullptr, dtype, std::move(shape));
    tensor.allocate(tensor.bytes());
    return tensor;
  }

  void* data() const { return data_; }
  DType dtype() const { return dtype_; }
  bool is_read_only() const { return read_only_; }  // borrows const memory
  const std::vector<int64_t>& shape() const { return shape_; }
  const std::vector<int64_t>& strides() const { return strides_; }  // in elements; empty: dense row-major

  int64_t elements() const {
    int64_t count = 1;
    for (const int64_t size : shape_) count *= size;
    return count;
  }
  // For a dense tensor of these sizes: each innermost row is rounded up to whole bytes.
  size_t bytes() const {
    if (elements() == 0) return 0;
    const int64_t row = shape_.empty() ? 1 : shape_.back();
    return static_cast<size_t>(elements() / row * ((row * bit_width(dtype_) + 7) / 8));
  }

  // The elements of a dense tensor in row-major order. T, or const T, must be the type of the dtype
  // (`dtype_of`); elements of dtypes without a C++ type (i4, e4m3 ...) are at `data()`. INGOT-U019
  // otherwise.
  template <typename T>
  std::span<T> values() const {
    if (dtype_of<std::remove_const_t<T>>() != dtype_)
      refuse("has another dtype than the requested element type");
    if (!strides_.empty()) refuse("is not dense");
    if (data_ == nullptr && elements() > 0) refuse("has no memory");
    return {static_cast<T*>(data_), static_cast<size_t>(elements())};
  }

  // The form that the C API takes; valid while this tensor is not changed.
  ingot_tensor view() const {
    return {data_,
            static_cast<int32_t>(dtype_),
            static_cast<int32_t>(shape_.size()),
            shape_.data(),
            strides_.empty() ? nullptr : strides_.data(),
            INGOT_DEVICE_CPU,
            0,
            0};
  }

 private:
  friend class Context;

  [[noreturn]] static void refuse(const std::string& problem) {
    detail::refuse("INGOT-U019", "the tensor " + problem, nullptr);
  }

  void check_sizes() const {
    if (bit_width(dtype_) == 0) refuse("has the dtype " + std::to_string(static_cast<int32_t>(dtype_)));
    if (!strides_.empty() && strides_.size() != shape_.size())
      refuse("has " + std::to_string(shape_.size()) + " dims, but " + std::to_string(strides_.size()) +
             " strides");
    int64_t count = 1, width = bit_width(dtype_);
    for (const int64_t size : shape_) {
      if (size < 0) refuse("has a dim of " + std::to_string(size));
      if (__builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count) ||
          count > INT64_MAX / std::max<int64_t>(width, 8))
        refuse("has more bytes than 64 bits can count");
    }
  }

  void swap(Tensor& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(dtype_, other.dtype_);
    std::swap(read_only_, other.read_only_);
    shape_.swap(other.shape_);
    strides_.swap(other.strides_);
    owner_.swap(other.owner_);
    std::swap(capacity_, other.capacity_);
  }

  // Takes new sizes; reuses its own memory if that is large enough and not shared. If allocation fails, the
  // tensor is left empty.
  void* resize(DType dtype, std::span<const int64_t> shape, size_t bytes) {
    if (owner_ == nullptr || owner_.use_count() > 1 || capacity_ < bytes) {
      *this = Tensor();
      allocate(bytes);
    }
    shape_.assign(shape.begin(), shape.end());
    dtype_ = dtype;
    strides_.clear();
    return data_;
  }

  void allocate(size_t bytes) {
    constexpr std::align_val_t kAlignment{64};
    const size_t capacity = std::max<size_t>(bytes, 64);  // at least one element of any dtype
    owner_.reset(::operator new(capacity, kAlignment),
                 [](void* memory) { ::operator delete(memory, kAlignment); });
    capacity_ = capacity;
    read_only_ = false;
    data_ = owner_.get();
  }

  void* data_ = nullptr;
  DType dtype_ = DType::kF32;
  bool read_only_ = false;
  std::vector<int64_t> shape_, strides_;
  std::shared_ptr<void> owner_;  // null: borrowed
  size_t capacity_ = 0;          // bytes of the owned memory
};

}  // namespace ingot

#endif  // INGOT_HAS_CPP20
