// SPDX-License-Identifier: Apache-2.0
#include "support/utf8.h"

#include <cstdint>

namespace ingot::core {
namespace {

// Bytes of the character that starts with `lead`; 0 if it is not a lead byte.
size_t character_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

bool is_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  uint32_t point = lead & (0xFF >> (text.size() + 1));
  for (const char next : text.substr(1)) {
    if ((static_cast<unsigned char>(next) & 0xC0) != 0x80) return false;
    point = (point << 6) | (static_cast<unsigned char>(next) & 0x3F);
  }
  if (text.size() == 3) return point >= 0x800 && (point < 0xD800 || point > 0xDFFF);
  return text.size() != 4 || (point >= 0x10000 && point <= 0x10FFFF);
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = character_length(static_cast<unsigned char>(text[0]));
    if (length == 0 || length > text.size() || !is_character(text.substr(0, length))) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace ingot::core
