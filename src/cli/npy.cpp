// SPDX-License-Identifier: Apache-2.0
#include "cli/npy.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

#include "cli/commands.h"

namespace ingot::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct DescrRow {
  int32_t dtype;
  const char* descr;
};
// bf16 and fp8 have no numpy dtype: they are written as raw void elements, as ml_dtypes does.
constexpr std::array kDescrs = {
    DescrRow{INGOT_BOOL, "|b1"},  DescrRow{INGOT_U8, "|u1"},   DescrRow{INGOT_I8, "|i1"},
    DescrRow{INGOT_I16, "<i2"},   DescrRow{INGOT_I32, "<i4"},  DescrRow{INGOT_I64, "<i8"},
    DescrRow{INGOT_F16, "<f2"},   DescrRow{INGOT_F32, "<f4"},  DescrRow{INGOT_F64, "<f8"},
    DescrRow{INGOT_U16, "<u2"},   DescrRow{INGOT_U32, "<u4"},  DescrRow{INGOT_U64, "<u8"},
    DescrRow{INGOT_BF16, "<V2"},  DescrRow{INGOT_E4M3, "|V1"}, DescrRow{INGOT_C64, "<c8"},
    DescrRow{INGOT_C128, "<c16"},
};

[[noreturn]] void refuse_npy(const std::string& origin, const std::string& problem) {
  throw CommandError(fmt::format("'{}': {}", origin, problem));
}

// The text behind "'key':" up to the next top-level comma or brace.
std::string_view entry(std::string_view header, std::string_view key, const std::string& origin) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) refuse_npy(origin, fmt::format("its header lacks \"{}\"", key));
  std::string_view rest = header.substr(at + key.size() + 3);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return rest;
}

std::vector<int64_t> parse_shape(std::string_view text, const std::string& origin) {
  std::vector<int64_t> shape;
  const size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos)
    refuse_npy(origin, "the shape in its header is not a tuple");
  std::string_view inside = text.substr(1, end - 1);
  while (true) {
    while (inside.starts_with(' ') || inside.starts_with(',')) inside.remove_prefix(1);
    if (inside.empty()) return shape;
    int64_t size = 0;
    const auto [next, error] = std::from_chars(inside.data(), inside.data() + inside.size(), size);
    if (error != std::errc() || size < 0) refuse_npy(origin, "the shape in its header has a bad size");
    shape.push_back(size);
    inside.remove_prefix(static_cast<size_t>(next - inside.data()));
  }
}

int32_t parse_descr(std::string_view text, const std::string& origin) {
  const size_t end = text.find('\'', 1);
  if (!text.starts_with('\'') || end == std::string_view::npos)
    refuse_npy(origin, "arrays of records are not supported");
  const std::string_view descr = text.substr(1, end - 1);
  for (const DescrRow& row : kDescrs) {
    if (descr == row.descr) return row.dtype;
  }
  refuse_npy(origin,
             fmt::format("dtype {} is not supported (big-endian, text and object arrays are not)", descr));
}

size_t checked_bytes(const Array& array, const std::string& origin) {
  size_t count = 1;
  for (const int64_t size : array.shape) {
    if (__builtin_mul_overflow(count, static_cast<size_t>(size), &count))
      refuse_npy(origin, "its shape is too large");
  }
  if (__builtin_mul_overflow(count, element_bits(array.dtype) / 8, &count))
    refuse_npy(origin, "its shape is too large");
  return count;
}

}  // namespace

Array parse_npy(std::span<const char> bytes, const std::string& origin) {
  const std::string_view all(bytes.data(), bytes.size());
  if (all.size() < 12 || !all.starts_with(kMagic)) refuse_npy(origin, "it is not a .npy file");
  const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<unsigned char>(all[at])); };
  const bool is_first_version = byte(6) == 1;
  size_t length = byte(8) | byte(9) << 8;
  if (!is_first_version) length |= byte(10) << 16 | byte(11) << 24;
  const size_t start = is_first_version ? 10 : 12;
  if (all.size() - start < length) refuse_npy(origin, "it ends inside its header");
  const std::string_view header = all.substr(start, length);
  if (entry(header, "fortran_order", origin).starts_with("True"))
    refuse_npy(origin, "it is in Fortran order; save it with order='C'");
  Array array{.name = "",
              .dtype = parse_descr(entry(header, "descr", origin), origin),
              .shape = parse_shape(entry(header, "shape", origin), origin),
              .data = {}};
  const std::string_view data = all.substr(start + length);
  const size_t wanted = checked_bytes(array, origin);
  if (data.size() != wanted)
    refuse_npy(origin,
               fmt::format("it has {} bytes of data, but its header specifies {}", data.size(), wanted));
  array.data.assign(data.begin(), data.end());
  return array;
}

std::vector<char> print_npy(const Array& array) {
  const char* descr = nullptr;
  for (const DescrRow& row : kDescrs) {
    if (row.dtype == array.dtype) descr = row.descr;
  }
  if (descr == nullptr) throw CommandError(fmt::format("{} has no .npy form", dtype_name(array.dtype)));
  std::string shape;
  for (const int64_t size : array.shape) shape += fmt::format("{},", size);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  header.append(64 - (10 + header.size() + 1) % 64, ' ');  // data starts at a multiple of 64
  header += '\n';
  std::string text(kMagic);
  for (const size_t byte : {size_t{1}, size_t{0}, header.size() & 0xff, header.size() >> 8}) {
    text += static_cast<char>(byte);  // version 1.0, then the header's length
  }
  text += header;
  std::vector<char> bytes(text.begin(), text.end());
  bytes.insert(bytes.end(), array.data.begin(), array.data.end());
  return bytes;
}

}  // namespace ingot::cli
