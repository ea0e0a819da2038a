// SPDX-License-Identifier: Apache-2.0
// Entries as files of a folder that any number of processes share. A reader finds a whole entry or none,
// whenever a writer is killed; whatever goes wrong is a miss and a message, never an exception.
//
// FOLDER/ab/cdef... is the entry whose key has the digest abcdef...; FOLDER/state holds the size of all
// entries and the newest stamp, and is locked while entries are added or removed. The time of an entry's last
// use, its stamp, is the file's modification time in seconds. Stamps never go back, as clocks may: each is at
// least the newest one.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/cache_key.h"
#include "cache/folder_state.h"
#include "cache/memory_store.h"
#include "support/file.h"
#include "support/file_system.h"

namespace ingot::core {

struct DiskStoreOptions {
  std::filesystem::path folder;                    // refused unless it is this user's alone (mode 0700)
  bool create = true;                              // the folder, if it is missing
  bool read_only = false;                          // nothing in it is changed, and `create` has no effect
  uint64_t limit = uint64_t{5} << 30;              // bytes of all entries
  std::function<void(const std::string&)> report;  // what went wrong, one line each; may be empty
  std::function<uint64_t()> seconds;               // the clock; empty: the system's
};

struct StoredEntry {
  std::string digest;  // in hexadecimal
  uint64_t bytes = 0, stamp = 0;
};

class DiskStore {
 public:
  explicit DiskStore(DiskStoreOptions options, const FileSystem& files = kSystemFiles);

  Blob find(const CacheKey& key);  // null: it is not there, or unusable, which is reported
  void put(const CacheKey& key, Bytes value) { put(key, std::span(&value, 1)); }
  void put(const CacheKey& key, std::span<const Bytes> parts);  // of one value

  // As `find`, but the value stays in the file, which is mapped: for large ones, and to share memory with
  // other processes. Its address is value_offset(key) above that of a page.
  struct Mapped {
    std::shared_ptr<const MappedFile> file;  // null: there is none
    Bytes value;
  };
  Mapped map(const CacheKey& key);

  const std::filesystem::path& folder() const { return options_.folder; }
  uint64_t limit() const { return options_.limit; }
  bool is_usable();  // reports why not, once
  // For tools. `list` has the least recently used entry first, and is empty if the folder is unusable.
  std::vector<StoredEntry> list();
  Blob read(const std::string& digest);  // the whole file of an entry; null if it cannot be read
  bool remove(const std::string& digest);
  void collect(uint64_t limit);  // removes the least recently used entries beyond, and what dead writers left

 private:
  std::string why_unusable();
  std::filesystem::path path_of(const std::string& digest) const;
  Blob read_file(const std::filesystem::path& path, FileVersion& version);
  // The value of an entry whose file was just read; empty if it is another one, which is removed.
  std::optional<Bytes> open(const CacheKey& key, Bytes file, const std::filesystem::path& path,
                            FileVersion version);
  bool write_file(const std::filesystem::path& path, Bytes bytes);
  void publish(const std::filesystem::path& temporary, const std::filesystem::path& path, uint64_t size);
  FolderTotals make_room(uint64_t limit);
  FolderTotals totals_of(const FolderState& state);
  uint64_t next_stamp(const FolderTotals& totals);
  void touch(const std::filesystem::path& path);
  void remove_if_abandoned(const std::filesystem::path& path);
  void report(std::string_view what, const std::filesystem::path& path, std::string_view why);
  void report_errno(std::string_view what, const std::filesystem::path& path);

  DiskStoreOptions options_;
  const FileSystem& files_;
  enum class Usable : uint8_t { kUnknown, kYes, kNo };
  std::atomic<Usable> usable_{Usable::kUnknown};
  std::atomic<uint64_t> newest_{0};  // stamp that this process knows of
};

}  // namespace ingot::core
