// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "engine/container.h"
#include "engine/sections.h"
#include "support/error.h"
#include "support/parallel.h"

namespace ingot::core {
namespace {

// Block `index` of the weights section, gaps filled with zeros. Made in `buffer`, where it is no part of one
// piece.
Bytes block_at(const WeightPlaces& places, uint64_t length, size_t index, std::vector<std::byte>& buffer) {
  const uint64_t begin = index * kWeightBlock, end = std::min<uint64_t>(begin + kWeightBlock, length);
  const auto end_of = [](const WeightPlaces::Piece& piece) { return piece.offset + piece.bytes.size(); };
  auto piece = std::ranges::upper_bound(places.pieces, begin, {}, end_of);
  if (piece != places.pieces.end() && piece->offset <= begin && end_of(*piece) >= end)
    return piece->bytes.subspan(begin - piece->offset, end - begin);
  buffer.assign(end - begin, std::byte{0});
  for (; piece != places.pieces.end() && piece->offset < end; ++piece) {
    const uint64_t from = std::max(begin, piece->offset), to = std::min<uint64_t>(end, end_of(*piece));
    std::memcpy(buffer.data() + (from - begin), piece->bytes.data() + (from - piece->offset), to - from);
  }
  return buffer;
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
  const size_t count = align_up(draft.weights_length, kWeightBlock) / kWeightBlock;
  std::vector<Digest> digests(count);
  checksums.resize(count * sizeof(Checksum));
  for_each_parallel(count, [&](size_t index) {
    std::vector<std::byte> buffer;
    const Bytes block = block_at(draft.places, draft.weights_length, index, buffer);
    const Checksum sum = checksum(block);
    std::ranges::copy(sum, checksums.begin() + static_cast<ptrdiff_t>(index * sizeof(sum)));
    digests[index] = digest(block);
  });
  DigestBuilder builder;
  for (const Digest& each : digests) builder.update(each);
  identity = builder.finish();
}

// SHA-256 of the model's weights: known where they did not change since the engine was read.
std::vector<Digest> digest_sources(const std::vector<SourceWeight>& sources) {
  std::vector<Digest> digests(sources.size());
  for_each_parallel(sources.size(), [&](size_t index) {
    const SourceWeight& source = sources[index];
    const bool known = source.digest != Digest{} || source.data == nullptr;
    digests[index] = known ? source.digest : digest_of(source, source.data.get());
  });
  return digests;
}

Draft make_draft(const EngineData& engine) {
  Draft draft{.places = place_weights(engine)};
  draft.weights_length = align_up(draft.places.length, kSmallAlignment);
  uint64_t images_length = 0;
  const std::vector<uint64_t> image_offsets = place_images(engine.images, images_length);
  std::vector<std::byte> checksums;
  Digest weights_digest{};
  hash_weights(draft, checksums, weights_digest);
  draft.contents = {to_bytes(engine.key),
                    write_metadata(engine, draft.places, image_offsets, digest_sources(engine.sources)),
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

[[noreturn]] void refuse_changed_weights(const EngineFile* origin) {
  if (origin != nullptr) origin->require_intact();  // the file, if it is to blame
  throw UserError("INGOT-U211", "the engine's weights changed while they were written",
                  "save it again while nothing writes to its weights");
}

// The weights again, as they were when the draft was made: each block in `buffer`, out of the reach of
// others, when it is checked.
void write_weights(const Draft& draft, const Sink& sink, const EngineFile* origin) {
  const std::byte* expected = draft.contents[3].data();
  std::vector<std::byte> buffer;
  for (size_t index = 0; index * kWeightBlock < draft.weights_length; ++index) {
    const Bytes block = block_at(draft.places, draft.weights_length, index, buffer);
    if (block.data() != buffer.data()) buffer.assign(block.begin(), block.end());
    const Checksum sum = checksum(buffer);
    if (std::memcmp(sum.data(), expected + index * sizeof(sum), sizeof(sum)) != 0)
      refuse_changed_weights(origin);
    sink(buffer);
  }
}

}  // namespace

Digest digest_of(const SourceWeight& source, const std::byte* data) {
  return data == nullptr ? Digest{} : digest({data, Tensor{nullptr, source.dtype, source.shape}.bytes()});
}

void write_engine(const EngineData& engine, const Sink& sink, const EngineFile* origin) {
  if (origin != nullptr) origin->require_unchanged();  // of what was truncated nothing may be read
  const Draft draft = make_draft(engine);
  if (origin != nullptr) origin->require_intact();  // afterwards, so that the draft is of what was loaded
  const Section& last = draft.sections.back();
  sink(write_header(draft.sections, last.offset + last.length));
  for (const auto& content : draft.contents) sink(content);
  write_weights(draft, sink, origin);
}

}  // namespace ingot::core
