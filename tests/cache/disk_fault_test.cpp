// SPDX-License-Identifier: Apache-2.0
// Every file call of the disk tier fails in turn, in the ways of full disks, read-only and network file
// systems: a miss and a line each time, never an exception, a wrong entry or an open file (D1 to D4).
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "cache/disk_store.h"
#include "tests/cache/folders.h"
#include "tests/support/long_mode.h"

namespace ingot::core {
namespace {

using testing::bytes_of;
using testing::kernel;
using testing::same;
using testing::TemporaryFolder;

// FileSystem holds plain functions, so that the plan of failures has to be visible to them.
struct CachePlan {
  int until_failure = -1;  // calls; negative: none fails
  bool persists = false;   // all that follow fail, too
  int error = EIO;
  bool does_it_anyway = false;  // and then says that it failed
  bool short_transfers = false;
  int calls = 0, open_files = 0;
};
thread_local CachePlan cache_plan;

bool call_fails() {
  ++cache_plan.calls;
  if (cache_plan.until_failure < 0) return false;
  const bool fails = cache_plan.until_failure == 0 || (cache_plan.persists && cache_plan.until_failure < 1);
  if (cache_plan.until_failure > 0)
    --cache_plan.until_failure;
  else if (!cache_plan.persists)
    cache_plan.until_failure = -1;
  errno = cache_plan.error;
  return fails;
}

template <typename Result, typename Call>
Result attempt(Call call) {
  if (!call_fails()) return call();
  if (cache_plan.does_it_anyway) call();
  errno = cache_plan.error;
  return Result(-1);
}

int opened(int file) {
  cache_plan.open_files += file >= 0 ? 1 : 0;
  return file;
}

size_t shortened(size_t size) { return cache_plan.short_transfers ? std::min<size_t>(size, 7) : size; }

FileSystem faulty() {
  FileSystem files = kSystemFiles;
  // Opening is never done anyway: nobody could close it.
  files.open_to_read = [](const char* p) { return call_fails() ? -1 : opened(kSystemFiles.open_to_read(p)); };
  files.open_to_update = [](const char* p) {
    return call_fails() ? -1 : opened(kSystemFiles.open_to_update(p));
  };
  files.create_exclusively = [](const char* p) {
    return call_fails() ? -1 : opened(kSystemFiles.create_exclusively(p));
  };
  files.read = [](int f, void* to, size_t n) {
    return attempt<int64_t>([&] { return kSystemFiles.read(f, to, shortened(n)); });
  };
  files.write = [](int f, const void* from, size_t n) {
    return attempt<int64_t>([&] { return kSystemFiles.write(f, from, shortened(n)); });
  };
  files.write_at = [](int f, const void* from, size_t n, int64_t at) {
    return attempt<int64_t>([&] { return kSystemFiles.write_at(f, from, n, at); });
  };
  files.version = [](int f, FileVersion* v) {
    return attempt<int>([&] { return kSystemFiles.version(f, v); });
  };
  files.describe = [](const char* p, bool follow, FileFacts* facts) {
    return attempt<int>([&] { return kSystemFiles.describe(p, follow, facts); });
  };
  files.close = [](int f) {
    --cache_plan.open_files;  // the descriptor is gone whatever close answers
    const int result = kSystemFiles.close(f);
    return call_fails() ? -1 : result;
  };
  files.rename = [](const char* a, const char* b) {
    return attempt<int>([&] { return kSystemFiles.rename(a, b); });
  };
  files.remove = [](const char* p) { return attempt<int>([&] { return kSystemFiles.remove(p); }); };
  files.make_folder = [](const char* p) { return attempt<int>([&] { return kSystemFiles.make_folder(p); }); };
  files.list = [](const char* p, void* user, void (*each)(void*, const char*)) {
    return attempt<int>([&] { return kSystemFiles.list(p, user, each); });
  };
  files.lock = [](int f) { return attempt<int>([&] { return kSystemFiles.lock(f); }); };
  files.unlock = [](int f) { return attempt<int>([&] { return kSystemFiles.unlock(f); }); };
  files.set_modified = [](const char* p, uint64_t s) {
    return attempt<int>([&] { return kSystemFiles.set_modified(p, s); });
  };
  return files;
}

constexpr int kEntries = 6;

std::vector<std::byte> value_of(int entry) { return bytes_of(300, entry); }
CacheKey key_of(int entry) { return kernel("entry " + std::to_string(entry)); }

// Puts and gets, at a limit that forces entries out; false if a get gave something else than what was put.
bool work(const std::filesystem::path& folder, const FileSystem& files) {
  uint64_t now = 1'800'000'000;
  DiskStore store({.folder = folder,
                   .limit = 1500,
                   .report = [](const std::string&) {},
                   .seconds = [&] { return now += 40; }},
                  files);
  bool right = true;
  for (int i = 0; i < 2 * kEntries; ++i) {
    const int entry = i * 5 % kEntries;
    store.put(key_of(entry), value_of(entry));
    for (int other = 0; other < kEntries; ++other) {
      const Blob found = store.find(key_of(other));
      right = right && (found == nullptr || *found == value_of(other));
    }
  }
  store.collect(1000);
  return right;
}

struct Fault {
  int error;
  bool persists, does_it_anyway, short_transfers;
};

TEST(DiskFaults, EachCallThatFailsIsAMiss) {
  const FileSystem files = faulty();
  cache_plan = {};
  {
    const TemporaryFolder folder;
    ASSERT_TRUE(work(folder.path() / "c", files));
  }
  const int calls = cache_plan.calls;
  ASSERT_GT(calls, 100);
  for (const Fault& fault : {Fault{ENOSPC, false, false, false}, Fault{ENOSPC, true, false, true},
                             Fault{EIO, false, false, true}, Fault{EROFS, true, false, false},
                             Fault{EMFILE, false, false, false}, Fault{ESTALE, false, true, false},
                             Fault{ENOLCK, false, false, false}, Fault{EIO, true, true, false}}) {
    for (int k = 0; k < calls; k += (k < 150 ? 1 : 7) * static_cast<int>(core::test::step_of_cases(3))) {
      const TemporaryFolder folder;
      cache_plan = {.until_failure = k,
                    .persists = fault.persists,
                    .error = fault.error,
                    .does_it_anyway = fault.does_it_anyway,
                    .short_transfers = fault.short_transfers};
      ASSERT_TRUE(work(folder.path() / "c", files)) << fault.error << " at call " << k;
      ASSERT_EQ(cache_plan.open_files, 0) << fault.error << " at call " << k;
      cache_plan = {};
      ASSERT_TRUE(work(folder.path() / "c", files)) << "after " << fault.error << " at call " << k;
    }
  }
}

TEST(DiskFaults, InterruptedCallsAreRepeated) {
  FileSystem files = kSystemFiles;
  files.read = [](int f, void* to, size_t n) -> int64_t {
    errno = EINTR;
    return ++cache_plan.calls % 2 == 0 ? kSystemFiles.read(f, to, n) : -1;
  };
  files.write = [](int f, const void* from, size_t n) -> int64_t {
    errno = EINTR;
    return ++cache_plan.calls % 2 == 0 ? kSystemFiles.write(f, from, n) : -1;
  };
  const TemporaryFolder folder;
  DiskStore store({.folder = folder.path() / "c"}, files);
  store.put(kernel("a"), bytes_of(100));
  EXPECT_TRUE(same(store.find(kernel("a")), bytes_of(100)));
}

// D4: no locks at all.
TEST(DiskFaults, WithoutLocksEntriesAreKeptAndNothingGoes) {
  FileSystem files = kSystemFiles;
  files.lock = [](int) {
    errno = ENOTSUP;
    return -1;
  };
  const TemporaryFolder folder;
  DiskStore store({.folder = folder.path() / "c", .limit = 1000}, files);
  for (int entry = 0; entry < kEntries; ++entry) store.put(key_of(entry), value_of(entry));
  for (int entry = 0; entry < kEntries; ++entry)
    EXPECT_TRUE(same(store.find(key_of(entry)), value_of(entry)));
}

// A holder that hangs costs a moment, not the build.
TEST(DiskFaults, ALockThatIsNotGivenBackIsNotWaitedFor) {
  const TemporaryFolder folder;
  DiskStore store({.folder = folder.path() / "c"});
  store.put(kernel("a"), bytes_of(100));
  const FolderState held(folder.path() / "c", kSystemFiles);
  ASSERT_TRUE(held.is_locked());
  store.put(kernel("b"), bytes_of(100));
  EXPECT_TRUE(same(store.find(kernel("b")), bytes_of(100)));
}

}  // namespace
}  // namespace ingot::core
