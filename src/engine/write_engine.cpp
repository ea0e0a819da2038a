// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <span>

#include "engine/container.h"
#include "engine/engine_file.h"
#include "engine/sections.h"
#include "support/digest_all.h"
#include "support/error.h"
#include "support/parallel.h"

namespace ingot::core {
namespace {

// Block `index` of the weights section, gaps filled with zeros. Assembled in `buffer` unless it is inside one
// value.
Bytes block_at(const PlacedLevels& places, uint64_t length, size_t index, std::vector<std::byte>& buffer) {
  const uint64_t begin = index * kWeightBlock, end = std::min<uint64_t>(begin + kWeightBlock, length);
  const auto end_of = [](const PlacedLevels::Piece& piece) { return piece.offset + piece.bytes.size(); };
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

// Counts the progress of a write; the callback runs on the caller's thread.
class Meter {
 public:
  Meter(const WriteWatch& watch, uint64_t total) : watch_(watch), total_(total) {}
  void add(uint64_t bytes) { done_ += bytes; }
  void operator()() const {
    if (watch_) watch_(done_, total_);
  }

 private:
  const WriteWatch& watch_;
  const uint64_t total_;
  std::atomic<uint64_t> done_{0};
};

// A file without its weights, in memory; the weights are read again when the file is written.
struct Draft {
  std::vector<std::vector<std::byte>> contents;  // of all sections except weights, padded
  std::vector<Section> sections;
};

// XXH3 of each block of the weights section.
std::vector<std::byte> checksum_weights(const PlacedLevels& places, uint64_t length, Meter& meter) {
  const size_t count = align_up(length, kWeightBlock) / kWeightBlock;
  std::vector<std::byte> checksums(count * sizeof(Checksum));
  for_each_watched(count, meter, [&](size_t index, const auto&) {
    std::vector<std::byte> buffer;
    const Checksum sum = checksum(block_at(places, length, index, buffer));
    std::ranges::copy(sum, checksums.begin() + static_cast<ptrdiff_t>(index * sizeof(sum)));
  });
  return checksums;
}

// The values to hash with SHA-256, each once: those of the weights section, and the model's weights outside
// of it.
struct ToHash {
  std::vector<Bytes> all;
  size_t pieces = 0;            // the first entries of `all` are that many values of the weights section
  std::vector<size_t> sources;  // index in `all` per source; SIZE_MAX: its digest is known, or it has no data
  uint64_t bytes = 0;
};

ToHash list_bytes(const EngineData& engine, const PlacedLevels& places) {
  ToHash list;
  std::map<std::pair<const std::byte*, size_t>, size_t> known;
  const auto add = [&](Bytes bytes) {
    const auto [entry, is_new] = known.try_emplace({bytes.data(), bytes.size()}, list.all.size());
    if (is_new) list.all.push_back(bytes);
    if (is_new) list.bytes += bytes.size();
    return entry->second;
  };
  for (const PlacedLevels::Piece& piece : places.pieces) {
    if (!piece.bytes.empty()) add(piece.bytes);
  }
  list.pieces = list.all.size();
  for (const SourceWeight& source : engine.sources) {
    const bool is_needed = source.digest == Digest{} && source.data != nullptr;
    list.sources.push_back(is_needed ? add({source.data.get(), source_bytes(source)}) : SIZE_MAX);
  }
  return list;
}

Digest weights_digest(std::span<const Digest> pieces) {
  DigestBuilder builder;
  for (const Digest& each : pieces) builder.update(each);
  return builder.finish();
}

std::vector<Digest> source_digests(const EngineData& engine, const ToHash& list,
                                   const std::vector<Digest>& digests) {
  std::vector<Digest> result;
  for (size_t i = 0; i < engine.sources.size(); ++i) {
    const size_t place = list.sources[i];
    result.push_back(place == SIZE_MAX ? engine.sources[i].digest : digests[place]);
  }
  return result;
}

// One engine being written to a file.
class Writing {
 public:
  Writing(const EngineData& engine, const WriteWatch& watch)
      : engine_(engine),
        levels_(levels_of(engine)),
        places_(place_weights(levels_)),
        weights_length_(align_up(places_.length, kSmallAlignment)),
        list_(list_bytes(engine, places_)),
        meter_(watch, list_.bytes + weights_length_) {}

  Draft draft();
  void write(const Draft& draft, const Sink& sink, const EngineFile* origin);

 private:
  void fill_level(Draft& draft, size_t level, const std::vector<Digest>& digests) const;
  void add_section(Draft& draft, size_t index, std::span<const Digest> pieces) const;
  void write_weights(const Draft& draft, const Sink& sink, const EngineFile* origin);

  const EngineData& engine_;
  const Levels levels_;
  const PlacedLevels places_;
  const uint64_t weights_length_;
  const ToHash list_;
  Meter meter_;
};

// `digests`: of the sources.
void Writing::fill_level(Draft& draft, size_t level, const std::vector<Digest>& digests) const {
  const EngineData& data = *levels_[level];
  uint64_t length = 0;
  const std::vector<uint64_t> offsets = place_images(data.images, length);
  const auto content = [&](SectionType type) -> std::vector<std::byte>& {
    return draft.contents[index_of(type, level, levels_.size())];
  };
  content(SectionType::kKey) = to_bytes(data.key);
  content(SectionType::kMetadata) = write_metadata(data, places_.levels[level], offsets, digests);
  content(SectionType::kPrograms) = write_programs(data);
  content(SectionType::kImages) = join_images(data.images, offsets, length);
}

// Behind the sections before it. `pieces`: digests of the values in the weights section.
void Writing::add_section(Draft& draft, size_t index, std::span<const Digest> pieces) const {
  const size_t levels = levels_.size();
  const bool is_weights = index + 1 == section_count(levels);
  const uint64_t content = is_weights ? weights_length_ : draft.contents[index].size();
  const uint64_t next = is_weights ? kSmallAlignment : section_alignment(index + 1, levels);
  const uint64_t offset =
      index == 0 ? header_bytes(levels) : draft.sections.back().offset + draft.sections.back().length;
  Section section{{.name = section_name(index, levels),
                   .offset = offset,
                   .length = align_up(offset + content, next) - offset}};
  section.content_length = content;
  if (is_weights) {
    section.checksum = draft.sections[checksums_index(levels)].checksum;
    section.digest = weights_digest(pieces);
  } else {
    draft.contents[index].resize(section.length);
    section.checksum = checksum(draft.contents[index]);
    section.digest = digest(draft.contents[index]);
  }
  draft.sections.push_back(std::move(section));
}

Draft Writing::draft() {
  Draft draft;
  draft.contents.resize(section_count(levels_.size()) - 1);
  draft.contents[checksums_index(levels_.size())] = checksum_weights(places_, weights_length_, meter_);
  const std::vector<Digest> digests = digest_all(list_.all, meter_, [&](size_t bytes) { meter_.add(bytes); });
  const std::vector<Digest> of_sources = source_digests(engine_, list_, digests);
  for (size_t level = 0; level < levels_.size(); ++level) fill_level(draft, level, of_sources);
  for (size_t i = 0; i < section_count(levels_.size()); ++i)
    add_section(draft, i, std::span(digests).first(list_.pieces));
  return draft;
}

[[noreturn]] void refuse_changed_weights(const EngineFile* origin) {
  if (origin != nullptr) origin->require_intact();  // reports a changed file first
  throw UserError("INGOT-U211", "the engine's weights changed while they were written",
                  "save it again while nothing writes to its weights");
}

// Writes the weights as they were when the draft was made: each block is checked after it was copied to
// `buffer`, where others cannot change it.
void Writing::write_weights(const Draft& draft, const Sink& sink, const EngineFile* origin) {
  const std::byte* expected = draft.contents[checksums_index(levels_.size())].data();
  std::vector<std::byte> buffer;
  for (size_t index = 0; index * kWeightBlock < weights_length_; ++index) {
    const Bytes block = block_at(places_, weights_length_, index, buffer);
    if (block.data() != buffer.data()) buffer.assign(block.begin(), block.end());
    const Checksum sum = checksum(buffer);
    if (std::memcmp(sum.data(), expected + index * sizeof(sum), sizeof(sum)) != 0)
      refuse_changed_weights(origin);
    sink(buffer);
    meter_.add(buffer.size());
    meter_();
  }
}

void Writing::write(const Draft& draft, const Sink& sink, const EngineFile* origin) {
  const Section& last = draft.sections.back();
  sink(write_header(draft.sections, last.offset + last.length,
                    format_of(engine_.main, levels_of(draft.sections.size()))));
  for (const auto& content : draft.contents) sink(content);
  write_weights(draft, sink, origin);
}

}  // namespace

void write_engine(const EngineData& engine, const Sink& sink, const EngineFile* origin,
                  const WriteWatch& watch) {
  if (origin != nullptr) origin->require_unchanged();  // nothing may be read from a truncated file
  Writing writing(engine, watch);
  const Draft draft = writing.draft();
  if (origin != nullptr) origin->require_intact();  // afterwards too, so that the draft has the loaded values
  writing.write(draft, sink, origin);
}

}  // namespace ingot::core
