// SPDX-License-Identifier: Apache-2.0
// Writes the wire format of protocol buffers; importers/onnx/wire.h reads it. Fields are written in the order
// of the calls, so that equal content has equal bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/bytes.h"

namespace ingot::core::exported {

class WireMessage {
 public:
  void integer(uint32_t field, int64_t value);
  void text(uint32_t field, std::string_view value);  // what is not UTF-8 is written with ? for its bytes
  void bytes(uint32_t field, Bytes value);
  void message(uint32_t field, const WireMessage& value);
  const std::string& content() const { return content_; }

 private:
  void varint(uint64_t value);
  void tagged(uint32_t field, std::string_view value);

  std::string content_;
};

}  // namespace ingot::core::exported
