// SPDX-License-Identifier: Apache-2.0
// Engine files: writer, reader, verifier. Reading runs nothing from the file and cannot crash, whatever it
// holds.
//
// File: header, section table, sections {key, metadata, programs, images, weights} without gaps or overlap;
// padding is zero, belongs to the section before it and is checked. The images and weights sections start at
// multiples of 64 KiB.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine_data.h"
#include "support/file.h"

namespace ingot::core {

constexpr uint32_t kEngineFormatVersion = 1;

struct SectionInfo {
  std::string name;
  uint64_t offset, length;  // bytes, padding included
  Checksum checksum;        // XXH3-128
  Digest digest;            // SHA-256; of weights: over their blocks' digests
};

void write_engine(const EngineData& engine, const std::filesystem::path& path);

// An opened file: everything but the weights' bytes is checked (XXH3-128) and validated; weights lie in the
// map.
class EngineFile {
 public:
  static std::shared_ptr<const EngineFile> open(const std::filesystem::path& path);
  static std::shared_ptr<const EngineFile> open(std::shared_ptr<const MappedFile> file);
  static std::shared_ptr<const EngineFile> open(Bytes bytes, std::shared_ptr<const void> owner);  // in memory

  const EngineData& data() const { return data_; }  // weights point into the map
  const std::vector<SectionInfo>& sections() const { return sections_; }
  Digest identity() const { return identity_; }                   // SHA-256 over the section table
  std::shared_ptr<const MappedFile> map() const { return map_; }  // null if in memory
  uint64_t image_offset(size_t image) const { return image_offsets_[image]; }  // in the file

  // Checks blocks [first, last) of 1 MiB of the weights against their checksums; UserError INGOT-U210 names
  // section and block.
  void verify_weights(size_t first, size_t last) const;
  size_t weight_blocks() const;
  // Also SHA-256 of every section: what `verify="full"`, `ingot verify` and trust="signed" check.
  void verify_all() const;

 private:
  EngineData data_;
  std::vector<SectionInfo> sections_;
  Digest identity_{};
  std::shared_ptr<const MappedFile> map_;
  std::shared_ptr<const void> owner_;
  Bytes bytes_;
  std::vector<uint64_t> image_offsets_;
};

}  // namespace ingot::core
