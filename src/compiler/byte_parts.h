// SPDX-License-Identifier: Apache-2.0
// Numbers, texts and byte strings in a row: what entries of a cache consist of.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "support/hash.h"

namespace ingot::core {

class ByteWriter {
 public:
  void number(uint64_t value) { append(std::as_bytes(std::span(&value, 1))); }
  void part(Bytes bytes) {
    number(bytes.size());
    append(bytes);
  }
  void text(std::string_view text) { part(as_bytes(text)); }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void append(Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  std::vector<std::byte> bytes_;
};

// Reads until something is longer than what is left: from then on all is empty or 0.
class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) : bytes_(bytes) {}

  uint64_t number() {
    uint64_t value = 0;
    const Bytes bytes = take(sizeof(value));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
  Bytes part() { return take(number()); }  // within what is read
  std::string text() {
    const Bytes bytes = part();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  bool is_whole() const { return is_whole_; }
  bool has_read_all() const { return is_whole_ && bytes_.empty(); }

 private:
  Bytes take(uint64_t size) {
    is_whole_ = is_whole_ && size <= bytes_.size();
    if (!is_whole_) return {};
    const Bytes taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }

  Bytes bytes_;
  bool is_whole_ = true;
};

}  // namespace ingot::core
