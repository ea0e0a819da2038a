// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace ingot::core {

// Writes JSON sequentially. Calls nest as the values do; inside an object each value follows its key. Invalid
// UTF-8 becomes U+FFFD.
class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag) { return raw(flag ? "true" : "false"); }
  JsonWriter& value(double number);  // null if it is not finite
  template <std::integral Integer>
  JsonWriter& value(Integer number) {
    return raw(std::to_string(number));
  }
  template <typename Value>
  JsonWriter& field(std::string_view name, const Value& content) {
    return key(name).value(content);
  }
  template <typename Range>
  JsonWriter& list(std::string_view name, const Range& items) {
    key(name).begin_array();
    for (const auto& item : items) value(item);
    return end_array();
  }

  std::string text() && { return std::move(text_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& raw(std::string_view text);
  void separate();

  std::string text_;
};

}  // namespace ingot::core
