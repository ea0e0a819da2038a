// SPDX-License-Identifier: Apache-2.0
// The lock of a file, for threads and processes alike. It belongs to the process that took it: a forked child
// has no share in it, however long it lives, and the system takes it from a process that dies.
#pragma once

#include <cstdint>
#include <filesystem>

#include "support/file_system.h"

namespace ingot::core {

class FileLock {
 public:
  // Opens the file, which is created if it is missing. Where that fails, `is_open` is false.
  FileLock(const std::filesystem::path& path, const FileSystem& files);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool try_lock();  // else errno is EWOULDBLOCK while another has it
  bool is_open() const { return file_ >= 0; }
  bool is_held() const;  // by this process
  int file() const { return file_; }

 private:
  bool is_forked() const;  // this is the copy of a child, which has closed the file

  const FileSystem& files_;
  int file_ = -1;
  bool is_locked_ = false;
  uint32_t forks_;
};

}  // namespace ingot::core
