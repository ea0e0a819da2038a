// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/tensors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core::onnx {
namespace {

struct DataType {
  int64_t number;
  std::string_view name;
  std::optional<DType> dtype;
};
constexpr auto kDataTypes = std::to_array<DataType>({{1, "float", DType::kF32},
                                                     {2, "uint8", DType::kU8},
                                                     {3, "int8", DType::kI8},
                                                     {4, "uint16", DType::kU16},
                                                     {5, "int16", DType::kI16},
                                                     {6, "int32", DType::kI32},
                                                     {7, "int64", DType::kI64},
                                                     {8, "string", {}},
                                                     {9, "bool", DType::kBool},
                                                     {10, "float16", DType::kF16},
                                                     {11, "double", DType::kF64},
                                                     {12, "uint32", DType::kU32},
                                                     {13, "uint64", DType::kU64},
                                                     {14, "complex64", {}},
                                                     {15, "complex128", {}},
                                                     {16, "bfloat16", DType::kBF16},
                                                     {17, "float8e4m3fn", DType::kE4M3},
                                                     {18, "float8e4m3fnuz", {}},
                                                     {19, "float8e5m2", DType::kE5M2},
                                                     {20, "float8e5m2fnuz", {}},
                                                     {21, "uint4", DType::kU4},
                                                     {22, "int4", DType::kI4},
                                                     {23, "float4e2m1", {}}});

[[noreturn]] void refuse_values(const TensorDef& tensor, std::string_view problem) {
  throw UserError("INGOT-U541", fmt::format("the values of '{}' are damaged: {}", tensor.name, problem),
                  "export or copy the model again");
}

[[noreturn]] void refuse_external(const TensorDef& tensor, std::string_view problem) {
  throw UserError("INGOT-U542",
                  fmt::format("the values of '{}' are in another file: {}", tensor.name, problem),
                  "keep the files of the model together, in one folder");
}

size_t bytes_of(const TensorDef& tensor, DType dtype) {
  int64_t bytes = bit_width(dtype) / 8;
  for (const int64_t size : tensor.dims) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes))
      refuse_values(tensor, "its shape is negative or too large");
  }
  return static_cast<size_t>(bytes);
}

// An entry of the external data: a decimal number, or nothing.
uint64_t number_entry(const TensorDef& tensor, const char* key, uint64_t otherwise) {
  const auto found = tensor.external.find(key);
  if (found == tensor.external.end()) return otherwise;
  const std::string& text = found->second;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    refuse_external(tensor, fmt::format("its {} is not a number", key));
  return value;
}

template <typename Element, typename Given>
void fill(std::byte* target, const std::vector<Given>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const auto element = static_cast<Element>(values[i]);
    std::memcpy(target + i * sizeof(Element), &element, sizeof(Element));
  }
}

// Halves, and everything of at most 64 bits that is an integer, are listed as integers.
void fill_integers(std::byte* target, const std::vector<int64_t>& values, int width) {
  if (width == 8) return fill<uint8_t>(target, values);
  if (width == 16) return fill<uint16_t>(target, values);
  if (width == 32) return fill<uint32_t>(target, values);
  fill<uint64_t>(target, values);
}

// Bools are bytes that must be 0 or 1: code that computes with others is undefined.
bool are_bools(Bytes bytes) {
  return std::ranges::all_of(bytes, [](std::byte value) { return value <= std::byte{1}; });
}

Tensor listed(const TensorDef& tensor, DType dtype, size_t bytes) {
  const size_t width = static_cast<size_t>(bit_width(dtype)), count = bytes / (width / 8);
  const size_t given = dtype == DType::kF32   ? tensor.floats.size()
                       : dtype == DType::kF64 ? tensor.doubles.size()
                                              : tensor.integers.size();
  if (given != count) refuse_values(tensor, fmt::format("its shape has {} elements, not {}", count, given));
  const Tensor dense = make_tensor(dtype, tensor.dims);
  if (dtype == DType::kF32) {
    fill<float>(dense.data.get(), tensor.floats);
  } else if (dtype == DType::kF64) {
    fill<double>(dense.data.get(), tensor.doubles);
  } else {
    fill_integers(dense.data.get(), tensor.integers, bit_width(dtype));
  }
  if (dtype == DType::kBool && !are_bools({dense.data.get(), bytes}))
    refuse_values(tensor, "a bool is neither 0 nor 1");
  return dense;
}

int nibble_at(const std::byte* bytes, int64_t index) {
  return (std::to_integer<int>(bytes[index / 2]) >> (4 * (index % 2))) & 15;
}

struct Rows {
  int64_t count = 1, length = 1;
};
Rows rows_of(std::span<const int64_t> shape) {
  Rows rows;
  for (size_t i = 0; i < shape.size(); ++i) (i + 1 == shape.size() ? rows.length : rows.count) *= shape[i];
  return rows;
}

bool is_inside(const std::filesystem::path& folder, const std::filesystem::path& file) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
}

}  // namespace

std::optional<DType> dtype_of(int64_t data_type) {
  const auto found = std::ranges::find(kDataTypes, data_type, &DataType::number);
  return found == kDataTypes.end() ? std::nullopt : found->dtype;
}

std::string data_type_name(int64_t data_type) {
  const auto found = std::ranges::find(kDataTypes, data_type, &DataType::number);
  return found == kDataTypes.end() ? fmt::format("number {}", data_type) : std::string(found->name);
}

DType widened(DType dtype) {
  return dtype == DType::kI4 ? DType::kI8 : dtype == DType::kU4 ? DType::kU8 : dtype;
}

Tensor widened(const Tensor& tensor) {
  const Rows rows = rows_of(tensor.shape);
  const Tensor wide = make_tensor(widened(tensor.dtype), tensor.shape);
  const int64_t stride = row_bytes(tensor.dtype, rows.length);
  for (int64_t i = 0; i < rows.count * rows.length; ++i) {
    const int64_t row = i / rows.length, column = i % rows.length;
    const int nibble = nibble_at(tensor.data.get() + row * stride, column);
    const bool is_negative = tensor.dtype == DType::kI4 && nibble > 7;
    wide.data.get()[i] = static_cast<std::byte>(is_negative ? nibble - 16 : nibble);
  }
  return wide;
}

Tensor TensorReader::read(const TensorDef& tensor) {
  const std::optional<DType> dtype = dtype_of(tensor.data_type);
  if (!dtype)
    throw UnsupportedError("INGOT-N540", fmt::format("'{}' has elements of type {}", tensor.name,
                                                     data_type_name(tensor.data_type)));
  if (bit_width(*dtype) == 4) return read_nibbles(tensor, *dtype);
  const size_t bytes = bytes_of(tensor, *dtype);
  if (!tensor.is_external && !tensor.raw) return listed(tensor, *dtype, bytes);
  const Bytes source = tensor.is_external ? external_bytes(tensor) : *tensor.raw;
  if (source.size() != bytes)
    refuse_values(tensor, fmt::format("its shape needs {} bytes, not {}", bytes, source.size()));
  if (*dtype == DType::kBool && !are_bools(source)) refuse_values(tensor, "a bool is neither 0 nor 1");
  const Tensor copy = make_tensor(*dtype, tensor.dims);
  std::ranges::copy(source, copy.data.get());
  return copy;
}

// Two elements in a byte, whatever the shape; here every row begins with a byte.
Tensor TensorReader::read_nibbles(const TensorDef& tensor, DType dtype) {
  const int64_t count = static_cast<int64_t>(bytes_of(tensor, DType::kU8)), bytes = (count + 1) / 2;
  std::vector<std::byte> given;
  if (tensor.is_external || tensor.raw) {
    const Bytes source = tensor.is_external ? external_bytes(tensor) : *tensor.raw;
    given.assign(source.begin(), source.end());
  } else {
    for (const int64_t pair : tensor.integers) given.push_back(static_cast<std::byte>(pair));
  }
  if (static_cast<int64_t>(given.size()) != bytes)
    refuse_values(tensor, fmt::format("its shape needs {} bytes, not {}", bytes, given.size()));
  Tensor packed = make_tensor(dtype, tensor.dims);
  const Rows rows = rows_of(packed.shape);
  const int64_t stride = row_bytes(dtype, rows.length);
  std::fill_n(packed.data.get(), rows.count * stride, std::byte{0});
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = i / rows.length, column = i % rows.length;
    packed.data.get()[row * stride + column / 2] |=
        static_cast<std::byte>(nibble_at(given.data(), i) << (4 * (column % 2)));
  }
  return packed;
}

Bytes TensorReader::external_bytes(const TensorDef& tensor) {
  const auto location = tensor.external.find("location");
  if (location == tensor.external.end()) refuse_external(tensor, "the model does not name it");
  const Bytes all = file(location->second, tensor.name)->bytes();
  const uint64_t offset = number_entry(tensor, "offset", 0);
  if (offset > all.size()) refuse_external(tensor, "it ends before the values begin");
  const uint64_t length = number_entry(tensor, "length", all.size() - offset);
  if (length > all.size() - offset) refuse_external(tensor, "it ends within the values");
  return all.subspan(offset, length);
}

// Only files in the model's folder, or below it: a model must not read others.
const std::shared_ptr<const MappedFile>& TensorReader::file(const std::string& location,
                                                            const std::string& name) {
  const auto [entry, is_new] = files_.try_emplace(location);
  if (!is_new && entry->second != nullptr) return entry->second;
  TensorDef tensor;
  tensor.name = name;
  if (!folder_) refuse_external(tensor, "a model in memory has no folder to find it in");
  const std::filesystem::path relative(location);
  const bool climbs = std::ranges::find(relative, std::filesystem::path("..")) != relative.end();
  if (location.empty() || location.find('\0') != std::string::npos || relative.is_absolute() || climbs)
    refuse_external(tensor, fmt::format("'{}' is outside of the model's folder", location));
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(folder_->empty() ? "." : *folder_, error);
  if (error) refuse_external(tensor, "the model's folder cannot be read: " + error.message());
  const std::filesystem::path target = std::filesystem::canonical(folder / relative, error);
  if (error) refuse_external(tensor, fmt::format("'{}': {}", location, error.message()));
  if (!is_inside(folder, target))
    refuse_external(tensor, fmt::format("'{}' is a link to outside of the model's folder", location));
  if (!std::filesystem::is_regular_file(target))
    refuse_external(tensor, fmt::format("'{}' is not a file", location));
  entry->second = MappedFile::open(target);
  return entry->second;
}

}  // namespace ingot::core::onnx
