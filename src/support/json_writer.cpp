// SPDX-License-Identifier: Apache-2.0
#include "support/json_writer.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace ingot::core {
namespace {

// Bytes of the UTF-8 sequence at the beginning of `text`; 0 if it is invalid, overlong or a surrogate.
size_t sequence_length(std::string_view text) {
  const auto at = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : static_cast<unsigned char>(0);
  };
  const unsigned char lead = at(0), second = at(1);
  if (lead < 0x80) return 1;
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool outside = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);
  if (lead < 0xC2 || lead > 0xF4 || overlong || outside) return 0;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

void append_quoted(std::string_view text, std::string& to) {
  to += '"';
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const char letter = text[0];
    if (length == 0) {
      to += "\\ufffd";
    } else if (letter == '"' || letter == '\\') {
      to += {'\\', letter};
    } else if (length == 1 && static_cast<unsigned char>(letter) < 0x20) {
      to += fmt::format("\\u{:04x}", static_cast<unsigned char>(letter));
    } else {
      to += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  to += '"';
}

}  // namespace

void JsonWriter::separate() {
  if (text_.empty()) return;
  const char last = text_.back();
  if (last != '{' && last != '[' && last != ':') text_ += ',';
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view text) {
  separate();
  text_ += text;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  value(name);
  text_ += ':';
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_quoted(text, text_);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  return raw(std::isfinite(number) ? fmt::format("{}", number) : "null");
}

}  // namespace ingot::core
