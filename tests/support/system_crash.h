// SPDX-License-Identifier: Apache-2.0
// What a crash of the system leaves of the file calls that were made: a record of the calls, and what reached
// the medium of them. A file system may write names and contents in any order; what was synced is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/file_system.h"

namespace ingot::core::testing {

// One change of the medium.
struct DiskChange {
  enum class Kind { kCreate, kWrite, kRename, kRemove, kFolder, kStamp, kSync } kind;
  std::string path, target = {};  // the new name of a rename; a file without a name has a path that is none
  std::vector<std::byte> bytes = {};
  size_t offset = 0;
  uint64_t stamp = 0;
};

enum class Syncs { kCount, kDoNothing };  // kDoNothing: as if the program did not call them

// The system's files; calls of this thread are recorded until they are taken.
FileSystem recording_files(Syncs syncs = Syncs::kCount);
std::vector<DiskChange> take_recorded_changes();

// Contents of files by path, as the changes that reached it left them.
class Medium {
 public:
  void apply(const DiskChange& change, const std::set<size_t>& lost_blocks = {});
  // The same files below `to`.
  void write_to(const std::filesystem::path& from, const std::filesystem::path& to) const;

 private:
  void write(const DiskChange& change, const std::set<size_t>& lost_blocks);
  void rename(const DiskChange& change);

  std::map<std::string, std::vector<std::byte>> files_;
};

// `begin` and what a crash after `count` changes may have left of these. `spoils`: of what was not synced,
// each change is lost in one of four cases, or a write loses some of its blocks, and neighbours among names
// change places.
Medium after_crash(Medium begin, std::vector<DiskChange> changes, size_t count, bool spoils,
                   std::mt19937& random);

}  // namespace ingot::core::testing
