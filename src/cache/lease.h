// SPDX-License-Identifier: Apache-2.0
// The right to make an entry of a folder that processes share: FOLDER/leases/DIGEST, locked. It ends with
// the process that has it, and forked children have no share in it.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>

#include "cache/file_lock.h"
#include "support/file_system.h"
#include "support/hash.h"

namespace ingot::core {

class Lease {
 public:
  // Waits while others have it, at most for `patience`; calls wait() now and then, whose exceptions pass
  // through. File systems without locks: nobody has it, and everybody goes on.
  Lease(const std::filesystem::path& folder, const Digest& digest, std::chrono::milliseconds patience,
        const std::function<void()>& wait, const FileSystem& files = kSystemFiles);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  bool has_waited() const { return has_waited_; }  // others may have made the entry meanwhile

 private:
  const FileSystem& files_;
  std::filesystem::path path_;
  FileLock lock_;
  bool has_waited_ = false;
};

}  // namespace ingot::core
