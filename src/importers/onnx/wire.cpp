// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/wire.h"

#include <bit>
#include <cstring>

#include "support/error.h"
#include "support/utf8.h"

namespace ingot::core::onnx {
namespace {

constexpr int kVarintBits = 64, kBitsPerByte = 7;

void require_kind(const WireField& field, WireField::Kind kind) {
  if (field.kind != kind) refuse_file("a field has another type than ONNX gives it");
}

template <typename Number>
Number number_at(Bytes bytes) {
  Number value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

template <typename Number>
void append_packed(Bytes bytes, std::vector<Number>& values) {
  if (bytes.size() % sizeof(Number) != 0) refuse_file("a list of numbers ends within one");
  for (; !bytes.empty(); bytes = bytes.subspan(sizeof(Number))) values.push_back(number_at<Number>(bytes));
}

}  // namespace

void refuse_file(std::string problem) {
  throw UserError("INGOT-U540", "the ONNX file is damaged: " + std::move(problem),
                  "check that it is an ONNX model, and copy or export it again");
}

bool WireReader::next(WireField& field) {
  if (rest_.empty()) return false;
  const uint64_t tag = varint();
  constexpr uint64_t kKindBits = 3, kMostNumber = (uint64_t{1} << 29) - 1;
  const uint64_t kind = tag & ((1U << kKindBits) - 1), number = tag >> kKindBits;
  if (number == 0 || number > kMostNumber) refuse_file("a field has no number");
  field = {.number = static_cast<uint32_t>(number), .kind = static_cast<WireField::Kind>(kind)};
  switch (field.kind) {
    case WireField::Kind::kVarint:
      field.bits = varint();
      return true;
    case WireField::Kind::kFixed64:
      field.bits = number_at<uint64_t>(take(sizeof(uint64_t)));
      return true;
    case WireField::Kind::kFixed32:
      field.bits = number_at<uint32_t>(take(sizeof(uint32_t)));
      return true;
    case WireField::Kind::kBytes:
      field.bytes = take(varint());
      return true;
  }
  refuse_file("a field is of no known kind");
}

uint64_t WireReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < kVarintBits; shift += kBitsPerByte) {
    const auto byte = static_cast<uint8_t>(take(1)[0]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  refuse_file("a number has more than 64 bits");
}

Bytes WireReader::take(uint64_t size) {
  if (size > rest_.size()) refuse_file("it ends too early");
  const Bytes taken = rest_.first(size);
  rest_ = rest_.subspan(size);
  return taken;
}

int64_t integer_of(const WireField& field) {
  require_kind(field, WireField::Kind::kVarint);
  return static_cast<int64_t>(field.bits);
}

float float_of(const WireField& field) {
  require_kind(field, WireField::Kind::kFixed32);
  return std::bit_cast<float>(static_cast<uint32_t>(field.bits));
}

std::string text_of(const WireField& field) {
  std::string text = bytes_of(field);
  if (!is_utf8(text)) refuse_file("a name is not UTF-8");
  return text;
}

std::string bytes_of(const WireField& field) {
  const Bytes bytes = message_of(field);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Bytes message_of(const WireField& field) {
  require_kind(field, WireField::Kind::kBytes);
  return field.bytes;
}

void append_integers(const WireField& field, std::vector<int64_t>& values) {
  if (field.kind != WireField::Kind::kBytes) {
    values.push_back(integer_of(field));
    return;
  }
  // Packed varints are what fields would be without their tags.
  Bytes rest = field.bytes;
  while (!rest.empty()) {
    uint64_t value = 0;
    int shift = 0;
    while (true) {
      if (rest.empty() || shift >= kVarintBits) refuse_file("a list of numbers is damaged");
      const auto byte = static_cast<uint8_t>(rest[0]);
      rest = rest.subspan(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      shift += kBitsPerByte;
      if ((byte & 0x80) == 0) break;
    }
    values.push_back(static_cast<int64_t>(value));
  }
}

void append_floats(const WireField& field, std::vector<float>& values) {
  if (field.kind == WireField::Kind::kBytes) return append_packed(field.bytes, values);
  values.push_back(float_of(field));
}

void append_doubles(const WireField& field, std::vector<double>& values) {
  if (field.kind == WireField::Kind::kBytes) return append_packed(field.bytes, values);
  require_kind(field, WireField::Kind::kFixed64);
  values.push_back(std::bit_cast<double>(field.bits));
}

}  // namespace ingot::core::onnx
