// SPDX-License-Identifier: Apache-2.0
#include "compiler/image_entry.h"

#include "compiler/byte_parts.h"

namespace ingot::core {
std::vector<std::byte> encode_image(const Image& image) {
  ByteWriter writer;
  writer.number(image.alignment);
  writer.text(image.kernel);
  writer.text(image.target);
  writer.part(image.code);
  return writer.take();
}

std::optional<Image> decode_image(Bytes bytes) {
  ByteReader reader(bytes);
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
