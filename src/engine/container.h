// SPDX-License-Identifier: Apache-2.0
// The outer structure of an engine file: header, section table, sections. Private to src/engine.
//
//   0  magic "INGOTENG"   8  u32 format   12  u32 sections   16  u64 file length   24  u64 header length
//  32  XXH3-128 of the header with this field zero           48  16 zero bytes     64  the table
// After the table, at 544: the signer's public key and the signature (signature.h), or zeros.
// Table entry: u32 type, u32 zero, u64 offset, u64 length with padding, u64 length of the content, XXH3-128,
// SHA-256. All integers are little-endian. Sections are in the order of their types and cover the file
// without gaps.
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
constexpr size_t kSectionCount = 6;
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

constexpr size_t section_alignment(size_t section) {
  return section >= 4 ? kLargeAlignment : kSmallAlignment;
}
constexpr uint64_t align_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// One row of the table, and the content without padding.
struct Section : SectionInfo {
  uint64_t content_length = 0;
};

// The header and table as bytes, checksum included.
std::vector<std::byte> write_header(const std::vector<Section>& sections, uint64_t file_length);

// The same header with a signature.
std::vector<std::byte> with_signature(Bytes header, const EngineSignature& signature);

struct Container {
  std::vector<std::byte> head;  // the bytes that were checked: a copy of everything before the weights
  std::vector<Section> sections;
  Digest identity;  // SHA-256 over the table
  std::optional<EngineSignature> signature;
  Bytes content(Bytes file, SectionType type) const {
    const Section& section = sections[static_cast<size_t>(type) - 1];
    return file.subspan(section.offset, section.content_length);
  }
};

// Checks header, table, offsets and padding, and the checksums of all sections except weights, in a copy:
// `file` may be a mapping that others write to. UserError INGOT-U200 to U204.
Container read_container(Bytes file, Checksums checksums);

// Throws UserError INGOT-U205 naming the section.
[[noreturn]] void refuse_content(SectionType type, std::string_view cause);

}  // namespace ingot::core
