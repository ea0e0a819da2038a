// SPDX-License-Identifier: Apache-2.0
#include "cache/file_lock.h"

#include "support/fork.h"

namespace ingot::core {

FileLock::FileLock(const std::filesystem::path& path, const FileSystem& files)
    : files_(files), forks_(fork_count()) {
  file_ = retry_interrupted([&] { return files_.open_to_update(path.c_str()); });
  if (file_ >= 0) close_in_children(file_);
}

// Unlocked before it is closed: a child that was being forked while the file was opened may have a copy.
FileLock::~FileLock() {
  if (file_ < 0 || is_forked()) return;
  if (is_locked_) files_.unlock(file_);
  keep_in_children(file_);
  files_.close(file_);
}

bool FileLock::try_lock() {
  is_locked_ = retry_interrupted([&] { return files_.lock(file_); }) == 0;
  return is_locked_;
}

bool FileLock::is_held() const { return is_locked_ && !is_forked(); }

bool FileLock::is_forked() const { return forks_ != fork_count(); }

}  // namespace ingot::core
