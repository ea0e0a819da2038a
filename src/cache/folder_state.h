// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "cache/file_lock.h"
#include "support/file_system.h"

namespace ingot::core {

struct FolderTotals {
  uint64_t bytes = 0;   // of all entries, at least: a writer that is killed leaves it too high, never too low
  uint64_t newest = 0;  // stamp
};

// The file FOLDER/state, locked from construction to destruction, against threads and processes alike.
class FolderState {
 public:
  // Waits a moment for others. File systems without locks, and holders that hang, leave it unlocked.
  FolderState(const std::filesystem::path& folder, const FileSystem& files);

  bool is_locked() const { return lock_.is_held(); }
  std::optional<FolderTotals> read() const;  // nothing if it was never written, or not wholly
  void write(const FolderTotals& totals);

 private:
  const FileSystem& files_;
  FileLock lock_;
};

}  // namespace ingot::core
