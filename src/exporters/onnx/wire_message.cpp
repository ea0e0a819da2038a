// SPDX-License-Identifier: Apache-2.0
#include "exporters/onnx/wire_message.h"

#include <algorithm>

#include "support/utf8.h"

namespace ingot::core::exported {
namespace {

constexpr uint64_t kMoreFollows = 0x80;
constexpr int kVarintShift = 7, kTagShift = 3;
constexpr uint64_t kLengthKind = 2;  // the low bits of a tag; 0 for integers

}  // namespace

void WireMessage::integer(uint32_t field, int64_t value) {
  varint(uint64_t{field} << kTagShift);
  varint(static_cast<uint64_t>(value));
}

void WireMessage::text(uint32_t field, std::string_view value) {
  if (is_utf8(value)) return tagged(field, value);
  std::string readable(value);
  std::ranges::replace_if(
      readable, [](char c) { return static_cast<unsigned char>(c) >= kMoreFollows; }, '?');
  tagged(field, readable);
}

void WireMessage::bytes(uint32_t field, Bytes value) {
  tagged(field, {reinterpret_cast<const char*>(value.data()), value.size()});
}

void WireMessage::message(uint32_t field, const WireMessage& value) { tagged(field, value.content_); }

void WireMessage::varint(uint64_t value) {
  for (; value >= kMoreFollows; value >>= kVarintShift)
    content_ += static_cast<char>((value & (kMoreFollows - 1)) | kMoreFollows);
  content_ += static_cast<char>(value);
}

void WireMessage::tagged(uint32_t field, std::string_view value) {
  varint(uint64_t{field} << kTagShift | kLengthKind);
  varint(value.size());
  content_ += value;
}

}  // namespace ingot::core::exported
