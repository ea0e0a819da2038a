// SPDX-License-Identifier: Apache-2.0
// Engine files: writer, reader, verifier. Reading runs nothing from the file and cannot crash, whatever it
// holds.
//
// File: header, section table, sections {key, metadata, programs, checksums, images, weights} without gaps or
// overlap; padding is zero, belongs to the preceding section and is checked. The images (kernel binaries) and
// weights sections start at multiples of 64 KiB.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine_data.h"
#include "engine/format.h"
#include "engine/section_info.h"
#include "support/file.h"

namespace ingot::core {

class EngineFile;
struct Container;
struct ReadMetadata;

// Progress of a write: bytes hashed with SHA-256 plus bytes written. Called on the caller's thread only; an
// exception of the callback ends the write.
using WriteWatch = std::function<void(uint64_t done, uint64_t total)>;

// Writes weights in the form that `engine` has: prepared values, or the model's. `origin` is the file that
// some of them may be mapped from, or null. The file receives the values that were loaded: UserError
// INGOT-U211 if `origin`, or any weight during the write, has changed. Each byte of a weight is hashed with
// SHA-256 once.
void write_engine(const EngineData& engine, const Sink& sink, const EngineFile* origin = nullptr,
                  const WriteWatch& watch = {});

// An opened file: everything except the weights' bytes is checked (XXH3-128) and validated; weights stay in
// the mapping, which shows later writes to the file. Everything else, including the weights' checksums, is a
// copy. UserError INGOT-U200 not an engine, U201 other format, U202 cut off, U203 header damaged, U204
// section damaged, U205 section malformed, U206 program or tables break a rule; each names the section or the
// rule.
class EngineFile {
 public:
  // `cpu`: which of the engine's levels is used; empty: the best that this machine has, see choose_level.
  static std::shared_ptr<const EngineFile> open(const std::filesystem::path& path, std::string_view cpu = {});
  static std::shared_ptr<const EngineFile> open(std::shared_ptr<const MappedFile> file,
                                                std::string_view cpu = {});
  // In memory; copied unless aligned to 64 bytes.
  static std::shared_ptr<const EngineFile> open(Bytes bytes, std::shared_ptr<const void> owner,
                                                Checksums checksums = Checksums::kVerify,
                                                std::string_view cpu = {});

  const EngineData& data() const { return data_; }  // weights point into the mapping
  uint32_t format() const { return format_of(data_.main, data_.other_levels.size() + 1); }
  const std::vector<SectionInfo>& sections() const { return sections_; }
  Digest identity() const { return identity_; }  // SHA-256 over the section table
  const std::optional<EngineSignature>& signature() const { return signature_; }  // unchecked
  Bytes header() const { return bytes_.first(sections_.front().offset); }
  Bytes bytes() const { return bytes_; }
  std::shared_ptr<const MappedFile> map() const { return map_; }               // null if in memory
  uint64_t image_offset(size_t image) const { return image_offsets_[image]; }  // in the file
  const SectionInfo& images() const { return sections_[images_index_]; }       // of the level in use
  uint64_t size() const { return bytes_.size(); }

  // Checks blocks [first, last) of 1 MiB of the weights against their checksums, and that gaps between
  // weights are zero; UserError INGOT-U210 names section and block.
  void verify_weights(size_t first, size_t last) const;
  size_t weight_blocks() const;
  // Also SHA-256 of every section: what `ingot verify` and trust="signed" check.
  void verify_all() const;

  // Throws UserError INGOT-U211 if a section or weight has changed since it was loaded. Reads the whole file.
  void require_intact() const;
  // The same, but only if the file's size or modification time differs from the last successful check:
  // otherwise it costs one system call.
  void require_unchanged() const;
  [[noreturn]] void refuse_change(std::string_view section) const;

 private:
  EngineFile() = default;
  void read(Checksums checksums, std::string_view cpu);
  void read_weights(const Container& container, const std::vector<ReadMetadata>& metadata,
                    std::vector<std::shared_ptr<EngineData>>& levels);
  Bytes section(std::string_view name) const;
  Bytes weight_block(size_t block) const;
  bool is_intact(size_t block) const;

  EngineData data_;
  std::vector<SectionInfo> sections_;
  Digest identity_{};
  std::optional<EngineSignature> signature_;
  std::shared_ptr<const MappedFile> map_;
  std::shared_ptr<const void> owner_;
  Bytes bytes_;
  mutable std::atomic<uint64_t> modified_{0};  // FileVersion::modified, at the last successful check
  size_t images_index_ = 0;
  std::vector<uint64_t> image_offsets_;
  std::vector<Checksum> block_checksums_;
  std::vector<Bytes> pieces_;                        // contents of the weights section, by offset
  std::vector<std::pair<uint64_t, uint64_t>> gaps_;  // begin and end in the weights section, by begin
};

}  // namespace ingot::core
