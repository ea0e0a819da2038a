// SPDX-License-Identifier: Apache-2.0
// The outer structure of an engine file: header, section table, sections. Private to src/engine.
//
//   0  magic "INGOTENG"   8  u32 format   12  u32 sections   16  u64 file length   24  u64 header length
//  32  XXH3-128 of the header with this field zero           48  16 zero bytes     64  the table
// After the table, at 544: the signer's public key and the signature (signature.h), or zeros.
// With N levels there are 4 N + 2 sections, and the signature is after the longer table.
// Table entry: u32 type, u32 level, u64 offset, u64 length with padding, u64 length of the content, XXH3-128,
// SHA-256. All integers are little-endian. Sections cover the file without gaps. Key, metadata and programs
// of each level come first, then the checksums, the images of each level, and the weights of all of them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/section_info.h"
#include "support/file.h"

namespace ingot::core {

enum class SectionType : uint32_t { kKey = 1, kMetadata, kPrograms, kChecksums, kImages, kWeights };
constexpr size_t kSectionCount = 6;  // of one level
constexpr std::array<std::string_view, kSectionCount> kSectionNames = {"key",       "metadata", "programs",
                                                                       "checksums", "images",   "weights"};
constexpr size_t kTableEntryBytes = 80;
constexpr size_t kTableOffset = 64;
constexpr size_t kSignatureOffset = kTableOffset + kSectionCount * kTableEntryBytes;
constexpr size_t kHeaderBytes = kSignatureOffset + sizeof(EngineSignature);
static_assert(kHeaderBytes % 64 == 0);
constexpr size_t kSmallAlignment = 64;
constexpr size_t kLargeAlignment = 64 << 10;  // of kernel binaries and weights
constexpr size_t kWeightBlock = 1 << 20;

constexpr uint64_t align_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// What a file of `levels` levels has at which position of its table.
constexpr size_t section_count(size_t levels) { return 4 * levels + 2; }
constexpr size_t levels_of(size_t sections) { return (sections - 2) / 4; }
constexpr size_t checksums_index(size_t levels) { return 3 * levels; }
constexpr SectionType type_at(size_t index, size_t levels) {
  if (index < 3 * levels) return static_cast<SectionType>(index % 3 + 1);
  if (index == checksums_index(levels)) return SectionType::kChecksums;
  return index + 1 < section_count(levels) ? SectionType::kImages : SectionType::kWeights;
}
constexpr size_t level_at(size_t index, size_t levels) {
  if (index < 3 * levels) return index / 3;
  return type_at(index, levels) == SectionType::kImages ? index - checksums_index(levels) - 1 : 0;
}
constexpr size_t index_of(SectionType type, size_t level, size_t levels) {
  if (type < SectionType::kChecksums) return 3 * level + static_cast<size_t>(type) - 1;
  if (type == SectionType::kImages) return checksums_index(levels) + 1 + level;
  return type == SectionType::kChecksums ? checksums_index(levels) : section_count(levels) - 1;
}
constexpr size_t section_alignment(size_t section, size_t levels = 1) {
  return section > checksums_index(levels) ? kLargeAlignment : kSmallAlignment;
}
constexpr size_t signature_offset(size_t levels) {
  return kTableOffset + section_count(levels) * kTableEntryBytes;
}
constexpr size_t header_bytes(size_t levels) { return signature_offset(levels) + sizeof(EngineSignature); }
static_assert(signature_offset(1) == kSignatureOffset && header_bytes(kMostLevels) % 64 == 0);

// "programs", or "programs of level 2" if there are several.
std::string section_name(size_t index, size_t levels);

// One row of the table, and the content without padding.
struct Section : SectionInfo {
  uint64_t content_length = 0;
};

// The header and table as bytes, checksum included.
std::vector<std::byte> write_header(const std::vector<Section>& sections, uint64_t file_length,
                                    uint32_t format);

// The same header with a signature.
std::vector<std::byte> with_signature(Bytes header, const EngineSignature& signature);

struct Container {
  std::vector<std::byte> head;  // the bytes that were checked: a copy of everything before the weights
  std::vector<Section> sections;
  Digest identity;  // SHA-256 over the table
  std::optional<EngineSignature> signature;
  size_t levels() const { return levels_of(sections.size()); }
  Bytes content(Bytes file, SectionType type, size_t level = 0) const {
    const Section& section = sections[index_of(type, level, levels())];
    return file.subspan(section.offset, section.content_length);
  }
};

// Checks header, table, offsets and padding, and the checksums of all sections except weights, in a copy:
// `file` may be a mapping that others write to. UserError INGOT-U200 to U204.
Container read_container(Bytes file, Checksums checksums);

// Throws UserError INGOT-U205 naming the section.
[[noreturn]] void refuse_content(SectionType type, std::string_view cause);

}  // namespace ingot::core
