// SPDX-License-Identifier: Apache-2.0
// Single elements of tensors as double or int64.
#include <cmath>
#include <cstring>
#include <type_traits>

#include "support/error.h"
#include "types/tensor.h"

namespace ingot::core {
namespace {

// A storage format: how one element is converted from and to the type `Value` that holds all its values.
template <typename Storage, typename Value, Value (*Load)(Storage), Storage (*Store)(Value)>
struct Converted {
  using StorageType = Storage;
  static Value load(Storage stored) { return Load(stored); }
  static Storage store(Value value) { return Store(value); }
};

template <typename Storage>
struct Plain {
  using StorageType = Storage;
  static Storage load(Storage stored) { return stored; }
  static Storage store(Storage value) { return value; }
};

struct Bool {
  using StorageType = uint8_t;
  static bool load(uint8_t stored) { return stored != 0; }
  static uint8_t store(bool value) { return value ? 1 : 0; }
};

template <typename Real>
struct Complex {  // the real part; stores set the imaginary part to 0
  struct StorageType {
    Real real;
    Real imaginary;
  };
  static Real load(StorageType stored) { return stored.real; }
  static StorageType store(Real value) { return {value, 0}; }
};

template <typename Nibble>
struct FourBits {};

// Calls `function` with the format of `dtype`.
template <typename Function>
auto visit_format(DType dtype, Function function) {
  switch (dtype) {
    case DType::kBool:
      return function(Bool());
    case DType::kU8:
      return function(Plain<uint8_t>());
    case DType::kI8:
      return function(Plain<int8_t>());
    case DType::kI16:
      return function(Plain<int16_t>());
    case DType::kI32:
      return function(Plain<int32_t>());
    case DType::kI64:
      return function(Plain<int64_t>());
    case DType::kF16:
      return function(Converted<uint16_t, float, half_to_float, float_to_half>());
    case DType::kBF16:
      return function(Converted<uint16_t, float, bfloat16_to_float, float_to_bfloat16>());
    case DType::kF32:
      return function(Plain<float>());
    case DType::kF64:
      return function(Plain<double>());
    case DType::kU16:
      return function(Plain<uint16_t>());
    case DType::kU32:
      return function(Plain<uint32_t>());
    case DType::kU64:
      return function(Plain<uint64_t>());
    case DType::kE4M3:
      return function(Converted<uint8_t, float, e4m3_to_float, float_to_e4m3>());
    case DType::kE5M2:
      return function(Converted<uint8_t, float, e5m2_to_float, float_to_e5m2>());
    case DType::kI4:
      return function(FourBits<int8_t>());
    case DType::kU4:
      return function(FourBits<uint8_t>());
    case DType::kC64:
      return function(Complex<float>());
    case DType::kC128:
      return function(Complex<double>());
  }
  throw InternalError("the dtype is not in the table");
}

// To integers: towards zero, modulo 2^bits; values outside of int64 and uint64 become the smallest int64.
template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr double kTwoTo63 = 9223372036854775808.0;
    if (value >= -kTwoTo63 && value < kTwoTo63) return static_cast<To>(static_cast<int64_t>(value));
    if (value >= kTwoTo63 && value < 2 * kTwoTo63) return static_cast<To>(static_cast<uint64_t>(value));
    return static_cast<To>(INT64_MIN);
  } else {
    return static_cast<To>(value);
  }
}

int64_t element_offset(const TensorView& view, std::span<const int64_t> index) {
  invariant(index.size() == view.shape.size(), "an index has one entry per dim");
  int64_t offset = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) offset += index[axis] * view.strides[axis];
  return offset;
}

template <typename Value, typename Format>
Value load(Format, const TensorView& view, int64_t offset) {
  typename Format::StorageType stored;
  std::memcpy(&stored, view.data + offset * static_cast<int64_t>(sizeof(stored)), sizeof(stored));
  return convert<Value>(Format::load(stored));
}

template <typename Value, typename Nibble>
Value load(FourBits<Nibble>, const TensorView& view, int64_t offset) {
  const auto nibble = static_cast<int>((view.data[offset >> 1] >> ((offset & 1) * 4)) & std::byte{0xF});
  return static_cast<Value>(std::is_signed_v<Nibble> && nibble > 7 ? nibble - 16 : nibble);
}

template <typename Value, typename Format>
void store(Format, const TensorView& view, int64_t offset, Value value) {
  using Held = decltype(Format::load({}));
  const typename Format::StorageType stored = Format::store(convert<Held>(value));
  std::memcpy(view.data + offset * static_cast<int64_t>(sizeof(stored)), &stored, sizeof(stored));
}

template <typename Value, typename Nibble>
void store(FourBits<Nibble>, const TensorView& view, int64_t offset, Value value) {
  const int shift = (offset & 1) * 4;
  const auto nibble = static_cast<std::byte>(convert<int64_t>(value) & 0xF);
  std::byte& target = view.data[offset >> 1];
  target = (target & ~(std::byte{0xF} << shift)) | (nibble << shift);
}

template <typename Value>
Value read(const TensorView& view, std::span<const int64_t> index) {
  const int64_t offset = element_offset(view, index);
  return visit_format(view.dtype, [&](auto format) { return load<Value>(format, view, offset); });
}

template <typename Value>
void write(const TensorView& view, std::span<const int64_t> index, Value value) {
  const int64_t offset = element_offset(view, index);
  visit_format(view.dtype, [&](auto format) { store(format, view, offset, value); });
}

}  // namespace

double read_double(const TensorView& view, std::span<const int64_t> index) {
  return read<double>(view, index);
}

int64_t read_integer(const TensorView& view, std::span<const int64_t> index) {
  return read<int64_t>(view, index);
}

void write_double(const TensorView& view, std::span<const int64_t> index, double value) {
  write(view, index, value);
}

void write_integer(const TensorView& view, std::span<const int64_t> index, int64_t value) {
  write(view, index, value);
}

}  // namespace ingot::core
