// SPDX-License-Identifier: Apache-2.0
// The operating system's file calls, as a table, so that tests can make the k-th of them fail.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace ingot::core {

enum class FileType {
  kNone,
  kRegular,
  kFolder,
  kLink,
  kStream,
  kOther
};  // kStream: a pipe or character device

// Of native paths: UTF-16 on Windows.
using PathChar = std::filesystem::path::value_type;

// Distinguishes versions of an open file's content, as far as the system's clock can: it ticks every few
// milliseconds.
struct FileVersion {
  int64_t size = 0;       // bytes
  uint64_t modified = 0;  // nanoseconds, modulo 2^64
  bool operator==(const FileVersion&) const = default;
};

// What a path names.
struct FileFacts {
  FileType type = FileType::kNone;
  uint32_t permissions = 0;  // of owner, group and others
  uint32_t owner = 0, group = 0;
  uint64_t device = 0, number = 0;  // together they identify the file
  FileVersion version;
};

// Each entry behaves like the POSIX call of its name, on Windows too: a negative value (map: nullptr) is a
// failure, and `errno` has the cause. Short reads and writes and EINTR are left to the caller.
struct FileSystem {
  int (*open_to_read)(const PathChar* path);
  int (*open_to_write)(const PathChar* path);       // an existing file, not truncated
  int (*open_folder)(const PathChar* path);         // to sync it
  int (*create_exclusively)(const PathChar* path);  // for writing; fails where something of that name exists
  int (*create_limited)(const PathChar* path, uint32_t permissions);  // the same, with no other permissions
  int (*create_unnamed)(const PathChar* folder);     // for writing; the file is gone when it is closed ...
  int (*give_name)(int file, const PathChar* path);  // ... unless it gets a name, which must be free
  int64_t (*read)(int file, void* target, size_t size);
  int64_t (*write)(int file, const void* source, size_t size);
  int (*version)(int file, FileVersion* version);
  int (*describe)(const PathChar* path, bool follow,
                  FileFacts* facts);  // a missing file is not a failure: kNone
  int64_t (*read_link)(const PathChar* path, PathChar* target, size_t size);
  int (*take_access)(int file, const FileFacts* from);  // the owner too, where that is permitted
  int (*sync)(int file);                                // succeeds if the file system does not support it
  // Starts writing [offset, offset + size) to the medium; `wait`: waits until it is there. A hint, which
  // cannot fail.
  void (*sync_part)(int file, int64_t offset, int64_t size, bool wait);
  int (*close)(int file);
  int (*rename)(const PathChar* from, const PathChar* to);
  int (*remove)(const PathChar* path);
  void* (*map)(int file, size_t offset, size_t size, bool executable);  // read-only, private
  int (*unmap)(void* address, size_t size);
  int (*make_folder)(const PathChar* path);     // for this user alone
  int (*open_to_update)(const PathChar* path);  // to read and write; created if it is missing
  int64_t (*write_at)(int file, const void* source, size_t size, int64_t offset);
  // For this descriptor and its copies in forked children, until it is unlocked or all of them are closed;
  // EWOULDBLOCK while another has it.
  int (*lock)(int file);
  int (*unlock)(int file);
  int (*set_modified)(const PathChar* path, uint64_t seconds);  // since 1970
  int (*list)(const PathChar* folder, void* user,
              void (*each)(void* user, const PathChar* name));  // but . and ..
};

extern const FileSystem kSystemFiles;

// Repeats a call that a signal interrupted.
template <typename Call>
auto retry_interrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace ingot::core
