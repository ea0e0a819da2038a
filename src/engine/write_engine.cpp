// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "engine/container.h"
#include "engine/sections.h"
#include "support/error.h"

namespace ingot::core {
namespace {

// Calls function(Bytes) for each 1 MiB block of the weights section, gaps filled with zeros.
template <typename Function>
void each_block(const WeightPlaces& places, uint64_t length, Function&& function) {
  std::vector<std::byte> block;
  size_t piece = 0;
  for (uint64_t begin = 0; begin < length; begin += kWeightBlock) {
    const uint64_t end = std::min<uint64_t>(begin + kWeightBlock, length);
    block.assign(end - begin, std::byte{0});
    for (size_t i = piece; i < places.pieces.size() && places.pieces[i].offset < end; ++i) {
      const auto& [offset, bytes] = places.pieces[i];
      const uint64_t from = std::max(begin, offset), to = std::min<uint64_t>(end, offset + bytes.size());
      if (from < to) std::memcpy(block.data() + (from - begin), bytes.data() + (from - offset), to - from);
      if (offset + bytes.size() <= end) piece = i + 1;
    }
    function(Bytes(block));
  }
}

std::vector<std::byte> join_images(const std::vector<Image>& images, const std::vector<uint64_t>& offsets,
                                   uint64_t length) {
  std::vector<std::byte> bytes(length);
  for (size_t i = 0; i < images.size(); ++i) {
    std::ranges::copy(images[i].code, bytes.begin() + static_cast<ptrdiff_t>(offsets[i]));
  }
  return bytes;
}

std::vector<std::byte> to_bytes(std::string_view text) {
  const Bytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

// All of a file but the weights, in memory; the weights are read twice, for their digests and for the file.
struct Draft {
  std::vector<std::vector<std::byte>> contents;  // of all sections but weights, padded
  std::vector<Section> sections;
  WeightPlaces places;
  uint64_t weights_length = 0;
};

void hash_weights(Draft& draft, std::vector<std::byte>& checksums, Digest& identity) {
  DigestBuilder digests;
  each_block(draft.places, draft.weights_length, [&](Bytes block) {
    const Checksum sum = checksum(block);
    checksums.insert(checksums.end(), sum.begin(), sum.end());
    digests.update(digest(block));
  });
  identity = digests.finish();
}

Draft make_draft(const EngineData& engine) {
  Draft draft{.places = place_weights(engine)};
  draft.weights_length = align_up(draft.places.length, kSmallAlignment);
  uint64_t images_length = 0;
  const std::vector<uint64_t> image_offsets = place_images(engine.images, images_length);
  std::vector<std::byte> checksums;
  Digest weights_digest{};
  hash_weights(draft, checksums, weights_digest);
  draft.contents = {to_bytes(engine.key), write_metadata(engine, draft.places, image_offsets),
                    write_programs(engine), std::move(checksums),
                    join_images(engine.images, image_offsets, images_length)};
  uint64_t offset = align_up(kHeaderBytes, section_alignment(0));
  for (size_t i = 0; i < kSectionCount; ++i) {
    const bool is_weights = i == kSectionCount - 1;
    const uint64_t content = is_weights ? draft.weights_length : draft.contents[i].size();
    const uint64_t next = is_weights ? kSmallAlignment : section_alignment(i + 1);
    Section section{{.name = std::string(kSectionNames[i]),
                     .offset = offset,
                     .length = align_up(offset + content, next) - offset}};
    section.content_length = content;
    if (is_weights) {
      section.checksum = draft.sections[3].checksum;
      section.digest = weights_digest;
    } else {
      draft.contents[i].resize(section.length);
      section.checksum = checksum(draft.contents[i]);
      section.digest = digest(draft.contents[i]);
    }
    offset += section.length;
    draft.sections.push_back(std::move(section));
  }
  return draft;
}

}  // namespace

void write_engine(const EngineData& engine, const Sink& sink) {
  const Draft draft = make_draft(engine);
  const Section& last = draft.sections.back();
  sink(write_header(draft.sections, last.offset + last.length));
  for (const auto& content : draft.contents) sink(content);
  each_block(draft.places, draft.weights_length, sink);
}

void write_engine(const EngineData& engine, const std::filesystem::path& path) {
  write_file_atomically(path, [&](const Sink& sink) { write_engine(engine, sink); });
}

}  // namespace ingot::core
