// SPDX-License-Identifier: Apache-2.0
#include "cache/entry.h"

#include <cstring>

namespace ingot::core {
namespace {

constexpr std::string_view kMagic = "INGOTENT";
constexpr uint32_t kVersion = 1;

struct Header {
  char magic[8];
  uint32_t version, kind;
  uint64_t text_length, value_length;
};
static_assert(sizeof(Header) == 32);

}  // namespace

std::vector<std::byte> seal_entry(const CacheKey& key, std::span<const Bytes> parts) {
  uint64_t length = 0;
  for (const Bytes part : parts) length += part.size();
  Header header{.magic = {},
                .version = kVersion,
                .kind = static_cast<uint32_t>(key.kind),
                .text_length = key.text.size(),
                .value_length = length};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  std::vector<std::byte> file;
  file.reserve(value_offset(key) + length + sizeof(Checksum));
  const auto append = [&](Bytes part) { file.insert(file.end(), part.begin(), part.end()); };
  append(std::as_bytes(std::span(&header, 1)));
  append(as_bytes(key.text));
  for (const Bytes part : parts) append(part);
  append(checksum(file));
  return file;
}

size_t value_offset(const CacheKey& key) { return sizeof(Header) + key.text.size(); }

std::variant<SealedEntry, std::string_view> open_entry(Bytes file) {
  constexpr size_t kAround = sizeof(Header) + sizeof(Checksum);
  if (file.size() < kAround) return "it is cut off";
  Header header;
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::string_view(header.magic, sizeof(header.magic)) != kMagic) return "it is not an entry of a cache";
  if (header.version != kVersion || header.kind > static_cast<uint32_t>(EntryKind::kWeights))
    return "another version of Ingot wrote it";
  const uint64_t inner = file.size() - kAround;
  if (header.text_length > inner || header.value_length != inner - header.text_length)
    return "its length is not what it says";
  const Bytes sealed = file.first(file.size() - sizeof(Checksum));
  const Checksum expected = checksum(sealed);
  if (std::memcmp(file.data() + sealed.size(), expected.data(), sizeof(Checksum)) != 0)
    return "it is damaged";
  const auto* text = reinterpret_cast<const char*>(file.data()) + sizeof(Header);
  return SealedEntry{.kind = static_cast<EntryKind>(header.kind),
                     .text = {text, header.text_length},
                     .value = sealed.subspan(sizeof(Header) + header.text_length)};
}

std::variant<Bytes, std::string_view> open_entry_of(const CacheKey& key, Bytes file) {
  const auto opened = open_entry(file);
  if (const auto* problem = std::get_if<std::string_view>(&opened)) return *problem;
  const auto& entry = std::get<SealedEntry>(opened);
  if (entry.text != key.text) return "it was made from something else";
  return entry.value;
}

}  // namespace ingot::core
