// SPDX-License-Identifier: Apache-2.0
#include "engine/container.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "engine/is_engine.h"
#include "support/error.h"

namespace ingot::core {
namespace {

// The same in every format, so that each version can name the format of any file: the magic, and where the
// format, the length of the header and the checksum over it are.
constexpr size_t kFormatOffset = 8, kCountOffset = 12, kLengthOffset = 24, kChecksumOffset = 32;
constexpr size_t kLeastHeader = kChecksumOffset + sizeof(Checksum), kLongestHeader = 1 << 16;

template <typename Number>
void put(std::vector<std::byte>& bytes, size_t offset, Number value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

template <typename Number>
Number get(Bytes bytes, size_t offset) {
  Number value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// The checksum field counts as zero.
Checksum header_checksum(Bytes header) {
  std::vector<std::byte> copy(header.begin(), header.end());
  std::fill_n(copy.begin() + kChecksumOffset, sizeof(Checksum), std::byte{0});
  return checksum(copy);
}

bool is_zero(Bytes bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

[[noreturn]] void refuse(std::string_view code, std::string message) {
  throw UserError(code, std::move(message), "copy the engine file again, or rebuild it");
}

// A .pt2 is a ZIP archive.
[[noreturn]] void refuse_other_file(Bytes file) {
  constexpr std::string_view kArchive = "PK\x03\x04";
  const bool is_archive = file.size() >= kArchive.size() && std::memcmp(file.data(), kArchive.data(), 4) == 0;
  throw UserError("INGOT-U200", "this is not an Ingot engine: section 'header' does not begin with INGOTENG",
                  is_archive ? "an engine is built of a model: `ingot build`, or ingot.build in Python"
                             : "copy the engine file again, or rebuild it");
}

[[noreturn]] void refuse_header(const std::string& cause) {
  refuse("INGOT-U203", fmt::format("the engine file is damaged in section 'header': {}", cause));
}

[[noreturn]] void refuse_format(uint32_t format) {
  const bool later = format > kLatestFormatVersion;
  throw UserError(
      "INGOT-U201",
      fmt::format(
          "the engine has format {} (section 'header'), which is {} than format {}; this version of Ingot "
          "reads {} to {}",
          format, later ? "later" : "earlier", later ? kLatestFormatVersion : kEngineFormatVersion,
          kEngineFormatVersion, kLatestFormatVersion),
      later ? "run it with the version of Ingot that built it, or build the model again with this one"
            : "build the model again with this version of Ingot, or run it with the one that built it");
}

bool is_intact(Bytes header) { return header_checksum(header) == get<Checksum>(header, kChecksumOffset); }

// Before anything else is read: the header of another format may be longer or shorter.
void check_format(Bytes file, Checksums checksums) {
  if (!is_engine(file)) refuse_other_file(file);
  if (file.size() < kLeastHeader) return;
  const auto format = get<uint32_t>(file, kFormatOffset);
  if (format >= kEngineFormatVersion && format <= kLatestFormatVersion) return;
  const auto length = get<uint64_t>(file, kLengthOffset);
  const bool possible = length >= kLeastHeader && length <= std::min(file.size(), kLongestHeader);
  if (checksums == Checksums::kIgnore || (possible && is_intact(file.first(length)))) refuse_format(format);
}

// One if the header says nothing else that is possible: then it is damaged, or of one level.
size_t count_levels(Bytes head) {
  if (head.size() < kHeaderBytes || get<uint32_t>(head, kFormatOffset) < kLevelsFormatVersion) return 1;
  const auto sections = get<uint32_t>(head, kCountOffset);
  const size_t levels = sections < kSectionCount ? 1 : levels_of(sections);
  return sections == section_count(levels) && levels <= kMostLevels ? levels : 1;
}

void check_header(Bytes file, size_t levels, Checksums checksums) {
  if (file.size() < header_bytes(levels)) {
    refuse("INGOT-U202",
           fmt::format("the engine file is cut off in section 'header': it has {} bytes", file.size()));
  }
  if (checksums == Checksums::kVerify && !is_intact(file)) refuse_header("its checksum is wrong");
  const auto format = get<uint32_t>(file, kFormatOffset);
  if (format < kRanksFormatVersion && format != (levels > 1 ? kLevelsFormatVersion : kEngineFormatVersion))
    refuse_header(fmt::format("its format {} is not consistent", format));
  if (get<uint32_t>(file, kCountOffset) != section_count(levels))
    refuse_header("it has an unknown number of sections");
  if (get<uint64_t>(file, kLengthOffset) != header_bytes(levels)) refuse_header("it has an unknown length");
  if (!is_zero(file.subspan(48, 16))) refuse_header("its padding is not zero");
}

Section read_entry(Bytes file, size_t index, size_t levels) {
  const size_t at = kTableOffset + index * kTableEntryBytes;
  Section section;
  section.name = section_name(index, levels);
  if (get<uint32_t>(file, at) != static_cast<uint32_t>(type_at(index, levels)) ||
      get<uint32_t>(file, at + 4) != level_at(index, levels))
    refuse_header("its table lists unexpected sections");
  section.offset = get<uint64_t>(file, at + 8);
  section.length = get<uint64_t>(file, at + 16);
  section.content_length = get<uint64_t>(file, at + 24);
  section.checksum = get<Checksum>(file, at + 32);
  section.digest = get<Digest>(file, at + 48);
  return section;
}

// Sections are contiguous: everything between the content of one and the start of the next is padding.
void check_places(uint64_t file_length, uint64_t declared, const std::vector<Section>& sections) {
  if (declared != file_length) {
    const Section* last = &sections[0];
    for (const Section& section : sections) {
      if (section.offset <= file_length) last = &section;
    }
    refuse("INGOT-U202", fmt::format("the engine file has {} bytes, but its header says {}: section '{}' is "
                                     "cut off or followed by other data",
                                     file_length, declared, last->name));
  }
  const size_t levels = levels_of(sections.size());
  uint64_t expected = header_bytes(levels);
  for (size_t i = 0; i < sections.size(); ++i) {
    const Section& section = sections[i];
    const bool inside = section.offset == expected && section.length <= file_length - section.offset &&
                        section.content_length <= section.length;
    const uint64_t next = i + 1 < sections.size() ? section_alignment(i + 1, levels) : kSmallAlignment;
    const bool padded =
        inside && section.offset + section.length == align_up(section.offset + section.content_length, next);
    if (!padded) refuse_header(fmt::format("section '{}' is at the wrong offset", section.name));
    expected = section.offset + section.length;
  }
  if (expected != file_length) refuse_header("its sections do not cover the file");
}

void check_section(Bytes file, const Section& section, Checksums checksums) {
  const Bytes bytes = file.subspan(section.offset, section.length);
  if (checksums == Checksums::kVerify && checksum(bytes) != section.checksum) {
    refuse("INGOT-U204",
           fmt::format("the engine file is damaged in section '{}': its checksum is wrong", section.name));
  }
  if (!is_zero(bytes.subspan(section.content_length))) {
    refuse("INGOT-U204",
           fmt::format("the engine file is damaged in section '{}': its padding is not zero", section.name));
  }
}

}  // namespace

std::string section_name(size_t index, size_t levels) {
  const SectionType type = type_at(index, levels);
  const std::string_view name = kSectionNames[static_cast<size_t>(type) - 1];
  const bool is_shared = type == SectionType::kChecksums || type == SectionType::kWeights;
  return levels == 1 || is_shared ? std::string(name)
                                  : fmt::format("{} of level {}", name, level_at(index, levels) + 1);
}

std::vector<std::byte> write_header(const std::vector<Section>& sections, uint64_t file_length,
                                    uint32_t format) {
  const size_t levels = levels_of(sections.size());
  std::vector<std::byte> header(header_bytes(levels));
  std::memcpy(header.data(), kEngineMagic.data(), kEngineMagic.size());
  put(header, kFormatOffset, format);
  put(header, kCountOffset, static_cast<uint32_t>(sections.size()));
  put(header, 16, file_length);
  put(header, kLengthOffset, static_cast<uint64_t>(header.size()));
  for (size_t i = 0; i < sections.size(); ++i) {
    const size_t at = kTableOffset + i * kTableEntryBytes;
    put(header, at, static_cast<uint32_t>(type_at(i, levels)));
    put(header, at + 4, static_cast<uint32_t>(level_at(i, levels)));
    put(header, at + 8, sections[i].offset);
    put(header, at + 16, sections[i].length);
    put(header, at + 24, sections[i].content_length);
    put(header, at + 32, sections[i].checksum);
    put(header, at + 48, sections[i].digest);
  }
  put(header, kChecksumOffset, header_checksum(header));
  return header;
}

std::vector<std::byte> with_signature(Bytes header, const EngineSignature& signature) {
  std::vector<std::byte> result(header.begin(), header.end());
  put(result, result.size() - sizeof(signature), signature);
  put(result, kChecksumOffset, header_checksum(result));
  return result;
}

Container read_container(Bytes file, Checksums checksums) {
  Container container;
  std::vector<std::byte>& head = container.head;
  const auto copy_up_to = [&](size_t end) {
    const Bytes added = file.subspan(head.size(), end - head.size());
    head.insert(head.end(), added.begin(), added.end());
  };
  check_format(file, checksums);
  copy_up_to(std::min(file.size(), kHeaderBytes));
  const size_t levels = count_levels(head), count = section_count(levels);
  copy_up_to(std::min(file.size(), header_bytes(levels)));
  check_header(head, levels, checksums);
  for (size_t i = 0; i < count; ++i) container.sections.push_back(read_entry(head, i, levels));
  check_places(file.size(), get<uint64_t>(head, 16), container.sections);
  container.identity = digest(Bytes(head).subspan(kTableOffset, count * kTableEntryBytes));
  const size_t signature = signature_offset(levels);
  if (!is_zero(Bytes(head).subspan(signature, sizeof(EngineSignature))))
    container.signature = get<EngineSignature>(head, signature);
  copy_up_to(container.sections.back().offset);
  for (size_t i = 0; i + 1 < count; ++i) check_section(head, container.sections[i], checksums);
  return container;
}

void refuse_content(SectionType type, std::string_view cause) {
  throw UserError("INGOT-U205",
                  fmt::format("the engine file is malformed in section '{}': {}",
                              kSectionNames[static_cast<size_t>(type) - 1], cause),
                  "copy the engine file again, or rebuild it");
}

}  // namespace ingot::core
