// SPDX-License-Identifier: Apache-2.0
// The wire format of protocol buffers: a message is a sequence of numbered fields. Nothing in the bytes is
// trusted: whatever they are, reading ends, and stays inside of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/bytes.h"

namespace ingot::core::onnx {

struct WireField {
  enum class Kind : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  uint32_t number = 0;
  Kind kind = Kind::kVarint;
  uint64_t bits = 0;  // of numbers
  Bytes bytes;        // of kBytes: a message, a text, or packed numbers
};

// UserError INGOT-U540, as everything here.
[[noreturn]] void refuse_file(std::string problem);

class WireReader {
 public:
  explicit WireReader(Bytes message) : rest_(message) {}
  bool next(WireField& field);  // false at the end

 private:
  uint64_t varint();
  Bytes take(uint64_t size);

  Bytes rest_;
};

// The value of a field; a field of another kind than the schema's is damage.
int64_t integer_of(const WireField& field);
float float_of(const WireField& field);
std::string text_of(const WireField& field);   // a string: UTF-8
std::string bytes_of(const WireField& field);  // any bytes
Bytes message_of(const WireField& field);

// Appends the numbers of a repeated field, packed or not.
void append_integers(const WireField& field, std::vector<int64_t>& values);
void append_floats(const WireField& field, std::vector<float>& values);
void append_doubles(const WireField& field, std::vector<double>& values);

}  // namespace ingot::core::onnx
