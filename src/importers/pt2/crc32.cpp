// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "importers/pt2/zip_archive.h"

namespace ingot::core::pt2 {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: what byte b contributes when k more bytes follow it.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xedb88320u : 0u);
    tables[0][byte] = value;
  }
  for (size_t k = 1; k < tables.size(); ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xff];
  return tables;
}
constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32(Bytes data) {
  uint32_t state = ~0u;
  size_t i = 0;
  for (; i + 8 <= data.size(); i += 8) {  // eight bytes at a time: metadata of large models has megabytes
    uint32_t next = 0;
    for (size_t k = 0; k < 8; ++k) {
      const uint32_t mask = k < 4 ? state >> (8 * k) : 0;
      next ^= kTables[7 - k][(std::to_integer<uint32_t>(data[i + k]) ^ mask) & 0xff];
    }
    state = next;
  }
  for (; i < data.size(); ++i)
    state = (state >> 8) ^ kTables[0][(std::to_integer<uint32_t>(data[i]) ^ state) & 0xff];
  return ~state;
}

}  // namespace ingot::core::pt2
