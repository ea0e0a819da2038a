// SPDX-License-Identifier: Apache-2.0
#include "cache/lease.h"

#include <cerrno>
#include <thread>

namespace ingot::core {
namespace {

constexpr std::chrono::milliseconds kLeasePause{10};

const std::filesystem::path& with_folder(const std::filesystem::path& path, const FileSystem& files) {
  files.make_folder(path.parent_path().c_str());  // else it exists, or the file cannot be opened either
  return path;
}

}  // namespace

Lease::Lease(const std::filesystem::path& folder, const Digest& digest, std::chrono::milliseconds patience,
             const std::function<void()>& wait, const FileSystem& files)
    : files_(files), path_(folder / "leases" / hex(digest)), lock_(with_folder(path_, files), files) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + patience;
  while (lock_.is_open() && !lock_.try_lock()) {
    if (errno != EWOULDBLOCK || Clock::now() >= end) return;
    has_waited_ = true;
    if (wait) wait();
    std::this_thread::sleep_for(kLeasePause);
  }
}

// Whoever waits has the file open: it gets the lock of the removed file, and finds the entry.
Lease::~Lease() {
  if (lock_.is_held()) files_.remove(path_.c_str());
}

}  // namespace ingot::core
