// SPDX-License-Identifier: Apache-2.0
// Files: read-only maps and atomic writes. All errors are DeviceError or UserError naming the path.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "support/hash.h"

namespace ingot::core {

// A read-only private map of a whole file. Movable; unmapped when destroyed. An empty file has an empty span.
class MappedFile {
 public:
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  // Maps [offset, offset + length) of the same file again as readable and executable; offset is a multiple of
  // the page size. Falls back to an executable private copy where the file system forbids it (noexec).
  std::shared_ptr<const MappedFile> map_executable(size_t offset, size_t length) const;

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  Bytes bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  MappedFile() = default;
  Bytes bytes_;
  std::filesystem::path path_;
};

// A block of executable memory holding a copy of `code` (write, then execute; never both). Page aligned.
std::shared_ptr<const std::byte> make_executable_copy(Bytes code);

// Writes through a private temporary file in the same folder and renames it, so that readers see the old file
// or the whole new one. `fill` receives a sink that appends bytes. Removes the temporary file on failure.
using Sink = std::function<void(Bytes)>;
void write_file_atomically(const std::filesystem::path& path, const std::function<void(const Sink&)>& fill);

std::string read_text_file(const std::filesystem::path& path);

}  // namespace ingot::core
