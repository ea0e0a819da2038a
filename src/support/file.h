// SPDX-License-Identifier: Apache-2.0
// Files: read-only maps and atomic writes. All errors name the path: UserError where the path is to blame
// (missing, forbidden, a folder), DeviceError where the system is (I/O, full disk, no memory).
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/file_system.h"
#include "support/hash.h"

namespace ingot::core {

// A read-only private map of a whole file, unmapped when destroyed. An empty file has an empty span. The map
// keeps showing the same file when its name is given to another, as FileWriter does. Other writers may change
// mapped bytes, and reading past the end of a file that was truncated in place raises SIGBUS.
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
  FileVersion opened_version() const { return opened_version_; }
  FileVersion version() const;  // now; of a map of `open`

 private:
  MappedFile(const FileSystem& files, std::filesystem::path path) : files_(files), path_(std::move(path)) {}
  const FileSystem& files_;
  std::filesystem::path path_;
  int file_ = -1;  // kept open, for map_executable
  FileVersion opened_version_;
  Bytes bytes_;
  std::shared_ptr<const std::byte> copy_;  // owns `bytes_` if they are not mapped
};

// A block of executable memory holding a copy of `code` (write, then execute; never both). Page aligned.
std::shared_ptr<const std::byte> make_executable_copy(Bytes code);

// A file being written. It appears under its name when it is finished: readers find the old file or the whole
// new one, even after a system crash (file and folder are synced). Until then the bytes are in an unnamed
// file of the same folder or, if the file system has none, in ".ingot-PID-RANDOM.tmp", which is removed on
// failure. Symbolic links are followed; the permissions of the old file are kept, and its owner if the system
// permits. Pipes and character devices are written directly; folders, sockets and block devices are rejected.
// Writeback starts early, so that no single call has to wait for all of it.
class FileWriter {
 public:
  explicit FileWriter(const std::filesystem::path& path, const FileSystem& files = kSystemFiles);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  void append(Bytes data);
  void finish();  // once, after the last append; InternalError if it was called before

 private:
  void create();
  void name_randomly();
  void replace();
  void flush();
  void write(Bytes data);
  void sync_behind();

  const std::filesystem::path path_;  // as given, for messages
  const FileSystem& files_;
  std::filesystem::path target_;     // the file behind the links of `path_`
  FileFacts old_;                    // of `target_`
  std::filesystem::path temporary_;  // empty: it has no name
  int file_ = -1;
  int64_t written_ = 0, begun_ = 0;  // bytes; writeback was started for the first `begun_` of them
  std::vector<std::byte> buffer_;
};

// The same in one call: `fill` receives a sink that appends bytes; exceptions of `fill` pass through.
using Sink = std::function<void(Bytes)>;
void write_file_atomically(const std::filesystem::path& path, const std::function<void(const Sink&)>& fill,
                           const FileSystem& files = kSystemFiles);

// Reads a whole file into the memory that `allocate` returns for its size; returns how many bytes were read.
size_t read_file(const std::filesystem::path& path, const std::function<std::byte*(size_t)>& allocate,
                 const FileSystem& files = kSystemFiles);

std::string read_text_file(const std::filesystem::path& path, const FileSystem& files = kSystemFiles);

}  // namespace ingot::core
