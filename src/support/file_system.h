// SPDX-License-Identifier: Apache-2.0
// The operating system's file calls, as a table, so that tests can make the k-th of them fail.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::core {

// Each entry answers as the POSIX call of its name does: a negative value (map: nullptr) is a failure, and
// `errno` says which. Short reads and writes and EINTR are the caller's business.
struct FileSystem {
  int (*open_to_read)(const char* path);
  int (*create_exclusively)(const char* path);  // for writing; fails where something of that name exists
  int64_t (*read)(int file, void* target, size_t size);
  int64_t (*write)(int file, const void* source, size_t size);
  int64_t (*size)(int file);
  int (*close)(int file);
  int (*rename)(const char* from, const char* to);
  int (*remove)(const char* path);
  void* (*map)(int file, size_t offset, size_t size, bool executable);  // read-only, private
  int (*unmap)(void* address, size_t size);
};

extern const FileSystem kSystemFiles;

}  // namespace ingot::core
