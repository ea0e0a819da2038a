// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_file.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "engine/container.h"
#include "engine/levels.h"
#include "engine/sections.h"
#include "engine/validate_engine.h"
#include "support/error.h"
#include "support/parallel.h"
#include "support/paths.h"

namespace ingot::core {
namespace {

using Gaps = std::vector<std::pair<uint64_t, uint64_t>>;

// The parts of [0, length) that no extent covers. Distinct extents may not overlap or leave more than
// `alignment` bytes between them.
Gaps find_gaps(const std::vector<Extent>& extents, uint64_t length, uint64_t alignment, SectionType type) {
  Gaps gaps;
  uint64_t end = 0;
  const auto leave = [&](uint64_t next) {
    if (next - end >= alignment) refuse_content(type, "it contains unused bytes");
    if (next > end) gaps.emplace_back(end, next);
  };
  for (const Extent& extent : extents) {
    if (extent.offset > length || extent.length > length - extent.offset)
      refuse_content(type, "an offset is outside of it");
    if (extent.offset < end) refuse_content(type, "two entries overlap");
    leave(extent.offset);
    end = extent.offset + extent.length;
  }
  leave(length);
  return gaps;
}

void require_zero(Bytes section, const std::pair<uint64_t, uint64_t>& gap, SectionType type) {
  const Bytes bytes = section.subspan(gap.first, gap.second - gap.first);
  const bool zero = std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
  if (!zero) refuse_content(type, "its padding is not zero");
}

[[noreturn]] void refuse_block(size_t block) {
  throw UserError(
      "INGOT-U210",
      fmt::format(
          "the engine file is damaged in section 'weights': the checksum of its block {} (of 1 MiB) is wrong",
          block),
      "copy the engine file again, or rebuild it");
}

// Keys are lines of text. Names in them are quoted, so the only control characters are line ends.
bool is_text(char letter) {
  return letter == '\n' || (static_cast<unsigned char>(letter) >= 0x20 && letter != 0x7F);
}

// All of a level but the values of its weights.
ReadMetadata read_level(const Container& container, size_t level, EngineData& data) {
  const auto content = [&](SectionType type) { return container.content(container.head, type, level); };
  const Bytes key = content(SectionType::kKey);
  data.key.assign(reinterpret_cast<const char*>(key.data()), key.size());
  if (!std::ranges::all_of(data.key, is_text)) refuse_content(SectionType::kKey, "it is not text");
  ReadMetadata metadata = read_metadata(content(SectionType::kMetadata), data);
  read_programs(content(SectionType::kPrograms), data);
  const Bytes images = content(SectionType::kImages);
  for (const auto& gap : find_gaps(distinct(metadata.images), images.size(), 4096, SectionType::kImages))
    require_zero(images, gap, SectionType::kImages);
  for (size_t i = 0; i < metadata.images.size(); ++i) {
    const Bytes code = images.subspan(metadata.images[i].offset, metadata.images[i].length);
    data.images[i].code.assign(code.begin(), code.end());
  }
  return metadata;
}

void point_to_weights(Bytes weights, const std::shared_ptr<const void>& owner, const ReadMetadata& metadata,
                      EngineData& data) {
  const auto at = [&](uint64_t offset) {
    const std::byte* value = offset == kNotKept ? nullptr : weights.data() + offset;
    return value == nullptr ? nullptr : std::shared_ptr<const std::byte>(owner, value);
  };
  for (size_t i = 0; i < data.weights.size(); ++i) data.weights[i].data = at(metadata.weights[i]);
  for (size_t i = 0; i < data.sources.size(); ++i) data.sources[i].data = at(metadata.sources[i]);
  for (size_t i = 0; i < data.state_values.size(); ++i) {
    data.state_values[i].data = std::const_pointer_cast<std::byte>(at(metadata.states[i]));
  }
}

std::shared_ptr<const std::byte> aligned_copy(Bytes bytes) {
  constexpr std::align_val_t kAlignment{64};
  auto* memory = static_cast<std::byte*>(::operator new(bytes.size() + 1, kAlignment));
  std::shared_ptr<const std::byte> copy(
      memory, [](const std::byte* data) { ::operator delete(const_cast<std::byte*>(data), kAlignment); });
  std::ranges::copy(bytes, memory);
  return copy;
}

}  // namespace

std::shared_ptr<const EngineFile> EngineFile::open(const std::filesystem::path& path, std::string_view cpu) {
  return open(MappedFile::open(path), cpu);
}

std::shared_ptr<const EngineFile> EngineFile::open(std::shared_ptr<const MappedFile> file,
                                                   std::string_view cpu) {
  std::shared_ptr<EngineFile> result(new EngineFile);
  result->bytes_ = file->bytes();
  result->owner_ = file;
  result->modified_ = file->opened_version().modified;
  result->map_ = std::move(file);
  result->read(Checksums::kVerify, cpu);
  return result;
}

std::shared_ptr<const EngineFile> EngineFile::open(Bytes bytes, std::shared_ptr<const void> owner,
                                                   Checksums checksums, std::string_view cpu) {
  std::shared_ptr<EngineFile> result(new EngineFile);
  result->bytes_ = bytes;
  result->owner_ = std::move(owner);
  if (reinterpret_cast<uintptr_t>(bytes.data()) % 64 != 0) {
    const auto copy = aligned_copy(bytes);
    result->bytes_ = {copy.get(), bytes.size()};
    result->owner_ = copy;
  }
  result->read(checksums, cpu);
  return result;
}

void EngineFile::read(Checksums checksums, std::string_view cpu) {
  const Container container = read_container(bytes_, checksums);
  identity_ = container.identity;
  signature_ = container.signature;
  sections_.assign(container.sections.begin(), container.sections.end());
  std::vector<std::shared_ptr<EngineData>> levels;
  std::vector<ReadMetadata> metadata;
  for (size_t i = 0; i < container.levels(); ++i) {
    levels.push_back(std::make_shared<EngineData>());
    metadata.push_back(read_level(container, i, *levels[i]));
  }
  read_weights(container, metadata, levels);
  Levels all;
  for (const auto& level : levels) all.push_back(level.get());
  for (const EngineData* level : all) validate_engine(*level);
  if (all.size() > 1) validate_levels(all);
  const size_t used = all.size() > 1 || !cpu.empty() ? choose_level(all, cpu) : 0;
  images_index_ = index_of(SectionType::kImages, used, all.size());
  for (const Extent& image : metadata[used].images) image_offsets_.push_back(images().offset + image.offset);
  data_ = std::move(*with_level(std::move(levels), used));
}

void EngineFile::read_weights(const Container& container, const std::vector<ReadMetadata>& metadata,
                              std::vector<std::shared_ptr<EngineData>>& levels) {
  const Bytes weights = container.content(bytes_, SectionType::kWeights);
  std::vector<Extent> extents;
  for (const ReadMetadata& each : metadata) extents.insert(extents.end(), each.used.begin(), each.used.end());
  const std::vector<Extent> used = distinct(std::move(extents));
  gaps_ = find_gaps(used, weights.size(), 64, SectionType::kWeights);
  for (const Extent& extent : used) pieces_.push_back(weights.subspan(extent.offset, extent.length));
  for (size_t i = 0; i < levels.size(); ++i) point_to_weights(weights, owner_, metadata[i], *levels[i]);
  const Bytes sums = container.content(container.head, SectionType::kChecksums);
  block_checksums_.resize(weight_blocks());
  if (sums.size() != block_checksums_.size() * sizeof(Checksum)) {
    refuse_content(SectionType::kChecksums, "it does not have one checksum per block of weights");
  }
  if (!sums.empty()) std::memcpy(block_checksums_.data(), sums.data(), sums.size());
}

Bytes EngineFile::section(std::string_view name) const {
  const auto found = std::ranges::find(sections_, name, &SectionInfo::name);
  return bytes_.subspan(found->offset, found->length);
}

size_t EngineFile::weight_blocks() const {
  return align_up(section("weights").size(), kWeightBlock) / kWeightBlock;
}

Bytes EngineFile::weight_block(size_t block) const {
  const Bytes weights = section("weights");
  const size_t begin = block * kWeightBlock;
  return weights.subspan(begin, std::min(kWeightBlock, weights.size() - begin));
}

bool EngineFile::is_intact(size_t block) const {
  return checksum(weight_block(block)) == block_checksums_[block];
}

void EngineFile::verify_weights(size_t first, size_t last) const {
  const Bytes weights = section("weights");
  for (size_t block = first; block < last; ++block) {
    if (!is_intact(block)) refuse_block(block);
  }
  const auto in_blocks =
      std::ranges::lower_bound(gaps_, first * kWeightBlock, {}, &std::pair<uint64_t, uint64_t>::first);
  for (auto gap = in_blocks; gap != gaps_.end() && gap->first < last * kWeightBlock; ++gap) {
    require_zero(weights, *gap, SectionType::kWeights);
  }
}

void EngineFile::verify_all() const {
  verify_weights(0, weight_blocks());
  std::vector<Digest> digests(pieces_.size());
  for_each_parallel(digests.size(), [&](size_t piece) { digests[piece] = digest(pieces_[piece]); });
  DigestBuilder all;
  for (const Digest& each : digests) all.update(each);
  const SectionInfo& checksums = sections_[checksums_index(levels_of(sections_.size()))];
  for (const SectionInfo& info : sections_) {
    const Digest actual = info.name == "weights" ? all.finish() : digest(section(info.name));
    const bool listed = info.name != "weights" || info.checksum == checksums.checksum;
    if (actual == info.digest && listed) continue;
    throw UserError(
        "INGOT-U204",
        fmt::format("the engine file is damaged in section '{}': its SHA-256 is wrong", info.name),
        "copy the engine file again, or rebuild it");
  }
}

void EngineFile::require_intact() const {
  // Before reading, so that the next call notices a change during this one.
  const FileVersion now = map_ == nullptr ? FileVersion{static_cast<int64_t>(size()), 0} : map_->version();
  if (now.size != static_cast<int64_t>(size())) refuse_change(sections_.back().name);
  for (const SectionInfo& info : sections_) {
    if (info.name != "weights" && checksum(section(info.name)) != info.checksum) refuse_change(info.name);
  }
  for_each_parallel(weight_blocks(), [&](size_t block) {
    if (!is_intact(block)) refuse_change("weights");
  });
  modified_ = now.modified;
}

void EngineFile::require_unchanged() const {
  if (map_ != nullptr && map_->version() != FileVersion{static_cast<int64_t>(size()), modified_})
    require_intact();
}

void EngineFile::refuse_change(std::string_view section) const {
  const std::string file = map_ == nullptr ? "the memory that holds the engine"
                                           : fmt::format("the file '{}'", to_text(map_->path()));
  throw UserError("INGOT-U211", fmt::format("{} changed after it was loaded, in section '{}'", file, section),
                  "restore the file and load it again; use memory=\"copy\" if others write to it");
}

}  // namespace ingot::core
