// SPDX-License-Identifier: Apache-2.0
#include "compiler/image_entry.h"

#include <cstring>
#include <string>

namespace ingot::core {
namespace {

void append_number(std::vector<std::byte>& bytes, uint64_t value) {
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(value));
}

void append_part(std::vector<std::byte>& bytes, Bytes part) {
  append_number(bytes, part.size());
  bytes.insert(bytes.end(), part.begin(), part.end());
}

// Reads parts until one is longer than what is left: from then on all are empty.
class PartReader {
 public:
  explicit PartReader(Bytes bytes) : bytes_(bytes) {}

  uint64_t number() {
    uint64_t value = 0;
    const Bytes bytes = take(sizeof(value));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
  Bytes part() { return take(number()); }
  std::string text() {
    const Bytes bytes = part();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
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

}  // namespace

std::vector<std::byte> encode_image(const Image& image) {
  std::vector<std::byte> bytes;
  append_number(bytes, image.alignment);
  append_part(bytes, as_bytes(image.kernel));
  append_part(bytes, as_bytes(image.target));
  append_part(bytes, image.code);
  return bytes;
}

std::optional<Image> decode_image(Bytes bytes) {
  PartReader reader(bytes);
  Image image;
  image.alignment = static_cast<uint32_t>(reader.number());
  image.kernel = reader.text();
  image.target = reader.text();
  const Bytes code = reader.part();
  image.code.assign(code.begin(), code.end());
  if (!reader.has_read_all()) return std::nullopt;
  return image;
}

}  // namespace ingot::core
