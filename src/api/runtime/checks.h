// SPDX-License-Identifier: Apache-2.0
// Argument checks shared by all functions of the C API.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "ingot/ingot.h"
#include "types/dtype.h"

namespace ingot::core::api {

// UserError INGOT-U012 if `pointer` is NULL.
void require(const void* pointer, std::string_view name);
// UserError INGOT-U014 if `index` is not below `count`.
void require_index(size_t index, size_t count, std::string_view what);
// UserError INGOT-U002 if `value` is not in 0..most.
void require_range(int32_t value, int32_t most, std::string_view what);
// The position of `name`. UserError INGOT-U318 lists the existing names.
size_t find_name(std::span<const std::string> names, std::string_view name, std::string_view what);
// UserError INGOT-U013 if a caller's struct is smaller than its first version.
void require_size(size_t given, size_t least, std::string_view type);
// UserError INGOT-U016 if `dtype` is not an ingot_dtype.
DType to_dtype(int32_t dtype);

// The caller's struct as this library knows it: fields missing in an older caller's struct are zero,
// additional fields of a newer caller are ignored.
template <typename T>
T read_struct(const T* given, size_t first_version, std::string_view type) {
  require(given, type);
  require_size(given->struct_size, first_version, type);
  T own{};
  std::memcpy(&own, given, std::min(given->struct_size, sizeof(T)));
  return own;
}

// Fills as many fields as the caller's struct has.
template <typename T>
void write_struct(T* given, T own, size_t first_version, std::string_view type) {
  require(given, type);
  require_size(given->struct_size, first_version, type);
  own.struct_size = given->struct_size;
  std::memcpy(given, &own, std::min(given->struct_size, sizeof(T)));
}

}  // namespace ingot::core::api
