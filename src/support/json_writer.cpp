// SPDX-License-Identifier: Apache-2.0
#include "support/json_writer.h"

#include <fmt/format.h>

#include <cmath>

namespace ingot::core {
namespace {

void append_escaped(std::string& to, char character) {
  switch (character) {
    case '"':
      to += "\\\"";
      return;
    case '\\':
      to += "\\\\";
      return;
    case '\n':
      to += "\\n";
      return;
    case '\t':
      to += "\\t";
      return;
    default:
      break;
  }
  const auto code = static_cast<unsigned char>(character);
  if (code < 0x20) {
    to += fmt::format("\\u{:04x}", code);
  } else {
    to += character;
  }
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
  text_ += '"';
  for (const char character : text) append_escaped(text_, character);
  text_ += '"';
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  return raw(std::isfinite(number) ? fmt::format("{}", number) : "null");
}

}  // namespace ingot::core
