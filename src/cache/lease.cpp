// SPDX-License-Identifier: Apache-2.0
#include "cache/lease.h"

#include <cerrno>
#include <thread>

namespace ingot::core {
namespace {

constexpr std::chrono::milliseconds kLeasePause{10};

}  // namespace

Lease::Lease(const std::filesystem::path& folder, const Digest& digest, std::chrono::milliseconds patience,
             const std::function<void()>& wait, const FileSystem& files)
    : files_(files), path_(folder / "leases" / hex(digest)) {
  using Clock = std::chrono::steady_clock;
  files_.make_folder(path_.parent_path().c_str());  // else it exists, or the next call fails too
  file_ = retry_interrupted([&] { return files_.open_to_update(path_.c_str()); });
  const Clock::time_point end = Clock::now() + patience;
  while (file_ >= 0) {
    is_held_ = retry_interrupted([&] { return files_.lock(file_); }) == 0;
    if (is_held_ || errno != EWOULDBLOCK || Clock::now() >= end) return;
    has_waited_ = true;
    if (wait) wait();
    std::this_thread::sleep_for(kLeasePause);
  }
}

// Whoever waits has the file open: it gets the lock of the removed file, and finds the entry.
Lease::~Lease() {
  if (is_held_) files_.remove(path_.c_str());
  if (file_ >= 0) files_.close(file_);
}

}  // namespace ingot::core
