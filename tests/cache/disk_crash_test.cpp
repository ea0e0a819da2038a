// SPDX-License-Identifier: Apache-2.0
// C3: the system crashes after any number of file calls of a store, which syncs nothing. What reached the
// medium by then is any part of it, in any order: names without contents, contents torn at blocks, old
// totals.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "cache/disk_store.h"
#include "cache/entry.h"
#include "tests/cache/folders.h"
#include "tests/support/system_crash.h"

namespace ingot::core {
namespace {

using testing::after_crash;
using testing::bytes_of;
using testing::DiskChange;
using testing::kernel;
using testing::recording_files;
using testing::take_recorded_changes;
using testing::TemporaryFolder;

constexpr int kNames = 5;
constexpr uint64_t kRoom = 4000;  // for three entries

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

std::vector<DiskChange> changes_of_use(const std::filesystem::path& folder) {
  use_store(folder, recording_files());
  return take_recorded_changes();
}

// A folder that was used, and what a crash after the last change leaves of it.
struct CrashedUse {
  explicit CrashedUse(bool spoils) {
    const std::vector<DiskChange> changes = changes_of_use(used);
    std::mt19937 random(1);
    after_crash({}, changes, changes.size(), spoils, random).write_to(used, copy);
  }
  const TemporaryFolder folder;
  const std::filesystem::path used = folder.path() / "used", copy = folder.path() / "copy";
};

TEST(DiskCrashes, AfterAnyPrefixWithAnythingLostEntriesAreWholeOrMissing) {
  const TemporaryFolder folder;
  const std::filesystem::path used = folder.path() / "used";
  const std::vector<DiskChange> changes = changes_of_use(used);
  ASSERT_GT(changes.size(), 100u);
  std::mt19937 random(1);
  for (size_t count = 0; count <= changes.size(); ++count) {
    for (int variant = 0; variant < 6; ++variant) {
      const std::filesystem::path copy = folder.path() / "copy";
      after_crash({}, changes, count, variant > 0, random).write_to(used, copy);
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
