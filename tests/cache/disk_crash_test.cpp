// SPDX-License-Identifier: Apache-2.0
// C3: the system crashes after any number of file calls of a store, which syncs nothing. What reached the
// medium by then is any part of it, in any order: names without contents, contents torn at blocks, old
// totals.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "cache/disk_store.h"
#include "cache/entry.h"
#include "tests/cache/folders.h"

namespace ingot::core {
namespace {

using testing::bytes_of;
using testing::kernel;
using testing::TemporaryFolder;

constexpr size_t kBlock = 512;
constexpr int kNames = 5;
constexpr uint64_t kRoom = 4000;  // for three entries

// One change of the medium.
struct Change {
  enum class Kind { kCreate, kWrite, kRename, kRemove, kFolder, kStamp } kind;
  std::string path, target;  // the new name of a rename
  std::vector<std::byte> bytes;
  size_t offset = 0;
  uint64_t stamp = 0;
};

// FileSystem holds plain functions, so that the record has to be visible to them.
struct CrashRecord {
  std::vector<Change> changes;
  std::map<int, std::pair<std::string, size_t>> files;  // path and position of each open file
};
thread_local CrashRecord crash_record;

int recorded_open(int file, const char* path) {
  if (file >= 0) crash_record.files[file] = {path, 0};
  return file;
}

void recorded_write(int file, const void* source, int64_t size, size_t offset) {
  if (size <= 0) return;
  const auto* bytes = static_cast<const std::byte*>(source);
  crash_record.changes.push_back({.kind = Change::Kind::kWrite,
                                  .path = crash_record.files.at(file).first,
                                  .target = {},
                                  .bytes = {bytes, bytes + size},
                                  .offset = offset});
}

int recorded(int result, Change change) {
  if (result >= 0) crash_record.changes.push_back(std::move(change));
  return result;
}

FileSystem recording() {
  using Kind = Change::Kind;
  FileSystem files = kSystemFiles;
  files.create_exclusively = [](const char* p) {
    const int file = recorded_open(kSystemFiles.create_exclusively(p), p);
    return recorded(file, {.kind = Kind::kCreate, .path = p, .target = {}, .bytes = {}});
  };
  files.open_to_update = [](const char* p) {
    const bool is_new = !std::filesystem::exists(p);
    const int file = recorded_open(kSystemFiles.open_to_update(p), p);
    return is_new ? recorded(file, {.kind = Kind::kCreate, .path = p, .target = {}, .bytes = {}}) : file;
  };
  files.write = [](int f, const void* from, size_t n) {
    const int64_t done = kSystemFiles.write(f, from, n);
    size_t& position = crash_record.files.at(f).second;
    recorded_write(f, from, done, position);
    position += static_cast<size_t>(std::max<int64_t>(done, 0));
    return done;
  };
  files.write_at = [](int f, const void* from, size_t n, int64_t at) {
    const int64_t done = kSystemFiles.write_at(f, from, n, at);
    recorded_write(f, from, done, static_cast<size_t>(at));
    return done;
  };
  files.rename = [](const char* a, const char* b) {
    return recorded(kSystemFiles.rename(a, b), {.kind = Kind::kRename, .path = a, .target = b, .bytes = {}});
  };
  files.remove = [](const char* p) {
    return recorded(kSystemFiles.remove(p), {.kind = Kind::kRemove, .path = p, .target = {}, .bytes = {}});
  };
  files.make_folder = [](const char* p) {
    return recorded(kSystemFiles.make_folder(p),
                    {.kind = Kind::kFolder, .path = p, .target = {}, .bytes = {}});
  };
  files.set_modified = [](const char* p, uint64_t s) {
    return recorded(kSystemFiles.set_modified(p, s),
                    {.kind = Kind::kStamp, .path = p, .target = {}, .bytes = {}, .stamp = s});
  };
  return files;
}

CacheKey key_of_name(int name) { return kernel("entry " + std::to_string(name)); }
// Each name has two values, so that entries are replaced.
std::vector<std::byte> value_of_name(int name, int form) {
  return bytes_of(1000 + static_cast<size_t>(name), 10 * form + name + 1);
}

DiskStore crashed_store_in(const std::filesystem::path& folder, const FileSystem& files = kSystemFiles) {
  const auto clock = [now = uint64_t{1'800'000'000}]() mutable { return now += 40; };
  return DiskStore({.folder = folder, .limit = kRoom, .seconds = clock}, files);
}

// Adds, replaces, evicts, uses and collects.
void use_store(const std::filesystem::path& folder, const FileSystem& files) {
  DiskStore store = crashed_store_in(folder, files);
  for (const int form : {0, 1}) {
    for (int name = 0; name < kNames; ++name) {
      store.put(key_of_name(name), value_of_name(name, form));
      store.find(key_of_name(0));
      store.put(key_of_name(name), value_of_name(name, 1 - form));
    }
  }
  store.collect(2000);
}

// A medium: contents of files by path, as the changes that reached it left them.
class Medium {
 public:
  void apply(const Change& change, const std::set<size_t>& lost_blocks) {
    switch (change.kind) {
      case Change::Kind::kCreate:
        files_.try_emplace(change.path);
        break;
      case Change::Kind::kWrite:
        write(change, lost_blocks);
        break;
      case Change::Kind::kRename:
        rename(change);
        break;
      case Change::Kind::kRemove:
        files_.erase(change.path);
        break;
      case Change::Kind::kFolder:
      case Change::Kind::kStamp:
        break;
    }
  }

  // The same files below `to`.
  void write_to(const std::filesystem::path& from, const std::filesystem::path& to) const {
    std::filesystem::create_directories(to);
    std::filesystem::permissions(to, std::filesystem::perms::owner_all);
    for (const auto& [path, bytes] : files_) {
      const std::filesystem::path own = to / std::filesystem::relative(path, from);
      std::filesystem::create_directories(own.parent_path());
      std::ofstream(own, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
  }

 private:
  // A block that was lost is zeros, or not there if nothing after it is.
  void write(const Change& change, const std::set<size_t>& lost_blocks) {
    const auto file = files_.find(change.path);
    if (file == files_.end()) return;
    for (size_t i = 0; i < change.bytes.size(); ++i) {
      if (lost_blocks.contains(i / kBlock)) continue;
      const size_t at = change.offset + i;
      if (file->second.size() <= at) file->second.resize(at + 1);
      file->second[at] = change.bytes[i];
    }
  }

  void rename(const Change& change) {
    const auto file = files_.find(change.path);
    if (file == files_.end()) return;
    files_[change.target] = std::move(file->second);
    files_.erase(change.path);
  }

  std::map<std::string, std::vector<std::byte>> files_;
};

bool is_metadata(const Change& change) { return change.kind != Change::Kind::kWrite; }

// What a crash after `count` changes may have left: each change is lost in one of four cases of `spoils`, or
// a write loses some of its blocks; neighbours among names change places.
Medium after_crash(std::vector<Change> changes, size_t count, bool spoils, std::mt19937& random) {
  changes.resize(count);
  for (size_t i = 1; spoils && i < changes.size(); ++i) {
    if (is_metadata(changes[i]) && random() % 4 == 0) std::swap(changes[i - 1], changes[i]);
  }
  Medium medium;
  for (const Change& change : changes) {
    if (spoils && random() % 4 == 0 && change.kind != Change::Kind::kCreate) continue;
    std::set<size_t> lost;
    for (size_t block = 0; spoils && block * kBlock < change.bytes.size(); ++block) {
      if (random() % 4 == 0) lost.insert(block);
    }
    medium.apply(change, lost);
  }
  return medium;
}

// Each name has one of its values or none; the store works, and keeps to its limit.
void expect_usable(const std::filesystem::path& folder) {
  DiskStore store = crashed_store_in(folder);
  for (int name = 0; name < kNames; ++name) {
    const Blob found = store.find(key_of_name(name));
    ASSERT_TRUE(found == nullptr || *found == value_of_name(name, 0) || *found == value_of_name(name, 1));
  }
  for (int name = 0; name < kNames; ++name) {
    store.put(key_of_name(name), value_of_name(name, 0));
    ASSERT_TRUE(testing::same(store.find(key_of_name(name)), value_of_name(name, 0)));
  }
  store.collect(kRoom);
  uint64_t bytes = 0;
  for (const StoredEntry& entry : store.list()) bytes += entry.bytes;
  ASSERT_LE(bytes, kRoom);
}

std::vector<Change> changes_of_use(const std::filesystem::path& folder) {
  crash_record = {};
  use_store(folder, recording());
  return std::exchange(crash_record, {}).changes;
}

// A folder that was used, and what a crash after the last change leaves of it.
struct CrashedUse {
  explicit CrashedUse(bool spoils) {
    const std::vector<Change> changes = changes_of_use(used);
    std::mt19937 random(1);
    after_crash(changes, changes.size(), spoils, random).write_to(used, copy);
  }
  const TemporaryFolder folder;
  const std::filesystem::path used = folder.path() / "used", copy = folder.path() / "copy";
};

TEST(DiskCrashes, AfterAnyPrefixWithAnythingLostEntriesAreWholeOrMissing) {
  const TemporaryFolder folder;
  const std::filesystem::path used = folder.path() / "used";
  const std::vector<Change> changes = changes_of_use(used);
  ASSERT_GT(changes.size(), 100u);
  std::mt19937 random(1);
  for (size_t count = 0; count <= changes.size(); ++count) {
    for (int variant = 0; variant < 6; ++variant) {
      const std::filesystem::path copy = folder.path() / "copy";
      after_crash(changes, count, variant > 0, random).write_to(used, copy);
      expect_usable(copy);
      ASSERT_FALSE(HasFatalFailure()) << count << " changes, variant " << variant;
      std::filesystem::remove_all(copy);
    }
  }
}

// The harness: replaying all changes gives the files as they are.
TEST(DiskCrashes, TheRecordIsComplete) {
  const CrashedUse use(false);
  const auto digests = [](const std::filesystem::path& each) {
    std::map<std::string, uint64_t> all;
    for (const StoredEntry& entry : crashed_store_in(each).list()) all[entry.digest] = entry.bytes;
    return all;
  };
  EXPECT_FALSE(digests(use.used).empty());
  EXPECT_EQ(digests(use.used), digests(use.copy));
}

// And it finds torn entries where the store trusts the file system: one without checksums would use some.
TEST(DiskCrashes, CrashesDoTearEntries) {
  const CrashedUse use(true);
  DiskStore store = crashed_store_in(use.copy);
  const std::vector<StoredEntry> entries = store.list();
  const auto is_torn = [&](const StoredEntry& entry) {
    const Blob file = store.read(entry.digest);
    return file == nullptr || !std::holds_alternative<SealedEntry>(open_entry(*file));
  };
  EXPECT_TRUE(std::ranges::any_of(entries, is_torn));
}

}  // namespace
}  // namespace ingot::core
