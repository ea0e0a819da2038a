// SPDX-License-Identifier: Apache-2.0
// Files: read-only maps and atomic writes. All errors name the path: UserError where the path is to blame
// (missing, forbidden, a folder), DeviceError where the system is (I/O, full disk, no memory).
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "support/file_system.h"
#include "support/hash.h"

namespace ingot::core {

// A read-only private map of a whole file, unmapped when destroyed. An empty file has an empty span. The file
// stays the same one when its name is given to another; truncating it in place is fatal, so writers rename.
class MappedFile {
 public:
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path,
                                                const FileSystem& files = kSystemFiles);
  // Maps [offset, offset + length) of the same file again as readable and executable; offset is a multiple of
  // the page size. Falls back to an executable private copy where the file system forbids it (noexec).
  std::shared_ptr<const MappedFile> map_executable(size_t offset, size_t length) const;

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  Bytes bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  MappedFile(const FileSystem& files, std::filesystem::path path) : files_(files), path_(std::move(path)) {}
  const FileSystem& files_;
  std::filesystem::path path_;
  int file_ = -1;  // kept open, for map_executable
  Bytes bytes_;
  std::shared_ptr<const std::byte> copy_;  // owns `bytes_` where they are no map
};

// A block of executable memory holding a copy of `code` (write, then execute; never both). Page aligned.
std::shared_ptr<const std::byte> make_executable_copy(Bytes code);

// Writes through a private temporary file in the same folder and renames it, so that readers see the old file
// or the whole new one. `fill` receives a sink that appends bytes; what it throws passes through. Removes the
// temporary file on failure; a killed process leaves ".ingot-PID-RANDOM.tmp".
using Sink = std::function<void(Bytes)>;
void write_file_atomically(const std::filesystem::path& path, const std::function<void(const Sink&)>& fill,
                           const FileSystem& files = kSystemFiles);

std::string read_text_file(const std::filesystem::path& path, const FileSystem& files = kSystemFiles);

}  // namespace ingot::core
