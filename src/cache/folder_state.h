// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

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
  ~FolderState();
  FolderState(const FolderState&) = delete;
  FolderState& operator=(const FolderState&) = delete;

  bool is_locked() const { return is_locked_; }
  std::optional<FolderTotals> read() const;  // nothing if it was never written, or not wholly
  void write(const FolderTotals& totals);

 private:
  const FileSystem& files_;
  int file_ = -1;
  bool is_locked_ = false;
};

}  // namespace ingot::core
