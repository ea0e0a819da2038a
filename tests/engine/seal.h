// SPDX-License-Identifier: Apache-2.0
// Puts sections, whatever they hold, into a file whose checksums are right.
#pragma once

#include <vector>

#include "engine/container.h"
#include "engine/sections.h"
#include "support/error.h"

namespace ingot::core::testing {

// Returns nothing for metadata that cannot be read.
inline std::vector<Extent> weights_of(Bytes metadata) {
  try {
    EngineData engine;
    return distinct(read_metadata(metadata, engine).used);
  } catch (const Error&) {
    return {};
  }
}

// The contents of the sections in order; those of `checksums` are computed here.
inline std::vector<std::byte> seal(std::vector<std::vector<std::byte>> contents) {
  contents[3].clear();
  contents[5].resize(align_up(contents[5].size(), kSmallAlignment));
  for (size_t begin = 0; begin < contents[5].size(); begin += kWeightBlock) {
    const Bytes block = Bytes(contents[5]).subspan(begin, std::min(kWeightBlock, contents[5].size() - begin));
    const Checksum sum = checksum(block);
    contents[3].insert(contents[3].end(), sum.begin(), sum.end());
  }
  DigestBuilder weights;
  for (const Extent& extent : weights_of(contents[1])) {
    const uint64_t size = contents[5].size();
    const bool inside = extent.offset <= size && extent.length <= size - extent.offset;
    if (inside) weights.update(digest(Bytes(contents[5]).subspan(extent.offset, extent.length)));
  }
  std::vector<std::byte> file(kHeaderBytes);
  std::vector<Section> sections;
  for (size_t i = 0; i < kSectionCount; ++i) {
    Section section{{.name = std::string(kSectionNames[i]), .offset = file.size()}};
    section.content_length = contents[i].size();
    file.insert(file.end(), contents[i].begin(), contents[i].end());
    file.resize(align_up(file.size(), i + 1 < kSectionCount ? section_alignment(i + 1) : kSmallAlignment));
    section.length = file.size() - section.offset;
    section.checksum = checksum(Bytes(file).subspan(section.offset));
    section.digest = digest(Bytes(file).subspan(section.offset));
    sections.push_back(std::move(section));
  }
  sections[5].checksum = sections[3].checksum;
  sections[5].digest = weights.finish();
  const std::vector<std::byte> header = write_header(sections, file.size(), kEngineFormatVersion);
  std::copy(header.begin(), header.end(), file.begin());
  return file;
}

}  // namespace ingot::core::testing
