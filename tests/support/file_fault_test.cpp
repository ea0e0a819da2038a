// SPDX-License-Identifier: Apache-2.0
// Every file call fails in turn: the error is one of ours, the old file is kept, and no other file is left.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <gtest/gtest.h>

#include "support/error.h"
#include "support/file.h"

namespace ingot::core {
namespace {

// FileSystem holds plain functions, so that the plan of failures has to be visible to them.
struct Plan {
  int calls_until_failure = -1;  // negative: none fails
  int error = EIO;
  bool short_transfers = false;
  int open_files = 0;
};
thread_local Plan plan;

bool fails() {
  if (plan.calls_until_failure < 0 || plan.calls_until_failure-- != 0) return false;
  errno = plan.error;
  return true;
}

int count_open(int file) {
  plan.open_files += file >= 0 ? 1 : 0;
  return file;
}

size_t limited(size_t size) { return plan.short_transfers ? std::min<size_t>(size, 3) : size; }

const FileSystem kFaultyFiles = {
    .open_to_read =
        [](const char* path) { return fails() ? -1 : count_open(kSystemFiles.open_to_read(path)); },
    .open_to_write =
        [](const char* path) { return fails() ? -1 : count_open(kSystemFiles.open_to_write(path)); },
    .open_folder = [](const char* path) { return fails() ? -1 : count_open(kSystemFiles.open_folder(path)); },
    .create_exclusively =
        [](const char* path) { return fails() ? -1 : count_open(kSystemFiles.create_exclusively(path)); },
    .create_unnamed =
        [](const char* folder) { return fails() ? -1 : count_open(kSystemFiles.create_unnamed(folder)); },
    .give_name = [](int file, const char* path) { return fails() ? -1 : kSystemFiles.give_name(file, path); },
    .read = [](int file, void* target, size_t size) -> int64_t {
      return fails() ? -1 : kSystemFiles.read(file, target, limited(size));
    },
    .write = [](int file, const void* source, size_t size) -> int64_t {
      return fails() ? -1 : kSystemFiles.write(file, source, limited(size));
    },
    .version = [](int file,
                  FileVersion* version) { return fails() ? -1 : kSystemFiles.version(file, version); },
    .describe =
        [](const char* path, bool follow, FileFacts* facts) {
          // No signal interrupts it.
          return plan.error != EINTR && fails() ? -1 : kSystemFiles.describe(path, follow, facts);
        },
    .read_link = kSystemFiles.read_link,
    .take_access =
        [](int file, const FileFacts* from) {
          return plan.error != EINTR && fails() ? -1 : kSystemFiles.take_access(file, from);
        },
    .sync = [](int file) { return fails() ? -1 : kSystemFiles.sync(file); },
    .sync_part = kSystemFiles.sync_part,
    .close =
        [](int file) {
          --plan.open_files;  // the descriptor is gone whatever close answers
          const int result = kSystemFiles.close(file);
          return fails() ? -1 : result;
        },
    .rename = [](const char* from, const char* to) { return fails() ? -1 : kSystemFiles.rename(from, to); },
    .remove = kSystemFiles.remove,
    .map = [](int file, size_t offset, size_t size, bool executable) -> void* {
      return fails() ? nullptr : kSystemFiles.map(file, offset, size, executable);
    },
    .unmap = kSystemFiles.unmap,
    .make_folder = nullptr,  // the rest is for caches: tests/cache/disk_fault_test.cpp
};

// A file system without files that have no name.
FileSystem without_unnamed() {
  FileSystem files = kFaultyFiles;
  files.create_unnamed = [](const char*) {
    errno = EOPNOTSUPP;
    return -1;
  };
  return files;
}
const FileSystem kOldFiles = without_unnamed();

// Where in the calls of one write each comes, in the order of `kFaultyFiles`; three descriptions are first.
constexpr int kCreate = 3, kWrite = 4, kGiveName = 7, kCallsOfWrite = 12;

class FileFaultTest : public ::testing::Test {
 protected:
  FileFaultTest() {
    std::string name = ::testing::TempDir() + "ingot_fault_test_XXXXXX";
    folder_ = ::mkdtemp(name.data());
    write("old", kSystemFiles);
    plan = {};
  }
  ~FileFaultTest() override { std::filesystem::remove_all(folder_); }

  void write(std::string_view text, const FileSystem& files) {
    write_file_atomically(path(), [&](const Sink& sink) { sink(as_bytes(text)); }, files);
  }
  std::filesystem::path path() const { return folder_ / "a"; }
  size_t entries() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  // Lets the first, second ... call fail until the action succeeds; returns how many failures it noticed.
  template <typename Action>
  int fail_each_call(int error_number, Action action) {
    int noticed = 0;
    for (int call = 0;; ++call) {
      plan = {.calls_until_failure = call, .error = error_number};
      try {
        action();
        EXPECT_EQ(plan.open_files, 0) << call;
        if (plan.calls_until_failure >= 0) return noticed;  // it made fewer calls
      } catch (const Error& error) {
        EXPECT_TRUE(error.kind() == ErrorKind::kUser || error.kind() == ErrorKind::kDevice) << error.what();
        EXPECT_NE(error.details().message.find(path().string()), std::string::npos) << error.what();
        EXPECT_EQ(plan.open_files, 0) << call;
        EXPECT_EQ(entries(), 1U) << call;
        ++noticed;
      }
    }
  }

  std::filesystem::path folder_;
};

class EachFileFaultTest : public FileFaultTest, public ::testing::WithParamInterface<int> {};

TEST_P(EachFileFaultTest, WritingIsAllOrNothing) {
  for (const FileSystem* files : {&kFaultyFiles, &kOldFiles}) {
    const int noticed = fail_each_call(GetParam(), [&] {
      try {
        write("new text", *files);
      } catch (const Error& error) {
        const bool late = error.details().message.find("sync the folder") != std::string::npos;
        EXPECT_EQ(read_text_file(path()), late ? "new text" : "old");
        write("old", kSystemFiles);
        throw;
      }
      EXPECT_EQ(read_text_file(path()), "new text");
      write("old", kSystemFiles);
    });
    // Three descriptions; creating, or naming what has no name; writing, permissions, syncing, closing,
    // renaming, and syncing the folder.
    EXPECT_EQ(noticed, 10);
  }
}

TEST_P(EachFileFaultTest, MappingReleasesWhatItHas) {
  EXPECT_EQ(fail_each_call(GetParam(),
                           [&] { EXPECT_EQ(MappedFile::open(path(), kFaultyFiles)->bytes().size(), 3U); }),
            3);
}

TEST_P(EachFileFaultTest, ReadingIntoMemoryReleasesWhatItHas) {
  std::vector<std::byte> memory;
  const auto allocate = [&](size_t bytes) {
    memory.resize(bytes);
    return memory.data();
  };
  EXPECT_EQ(fail_each_call(GetParam(), [&] { EXPECT_EQ(read_file(path(), allocate, kFaultyFiles), 3U); }), 3);
}

TEST_P(EachFileFaultTest, ReadingReleasesWhatItHas) {
  EXPECT_EQ(fail_each_call(GetParam(), [&] { EXPECT_EQ(read_text_file(path(), kFaultyFiles), "old"); }), 3);
}

INSTANTIATE_TEST_SUITE_P(Errors, EachFileFaultTest,
                         ::testing::Values(EIO, ENOSPC, EMFILE, ESTALE, EACCES, EDQUOT),
                         [](const auto& info) { return std::string(strerrorname_np(info.param)); });

TEST_F(FileFaultTest, InterruptedCallsAreRepeated) {
  for (int call = 0; call < kCallsOfWrite; ++call) {
    plan = {.calls_until_failure = call, .error = EINTR};
    write("new text", kFaultyFiles);
    plan = {.calls_until_failure = call, .error = EINTR};
    write("new text", kOldFiles);
    plan = {.calls_until_failure = call, .error = EINTR};
    EXPECT_EQ(read_text_file(path(), kFaultyFiles), "new text");
  }
}

TEST_F(FileFaultTest, ShortTransfersAreContinued) {
  plan = {.short_transfers = true};
  write("new text of some length", kFaultyFiles);
  EXPECT_EQ(read_text_file(path(), kFaultyFiles), "new text of some length");
}

TEST_F(FileFaultTest, TakenNameIsTriedAgain) {
  plan = {.calls_until_failure = kGiveName, .error = EEXIST};
  write("new", kFaultyFiles);
  EXPECT_EQ(read_text_file(path()), "new");
  plan = {.calls_until_failure = kCreate, .error = EEXIST};
  write("newer", kOldFiles);
  EXPECT_EQ(read_text_file(path()), "newer");
}

TEST_F(FileFaultTest, FullDeviceIsADeviceError) {
  plan = {.calls_until_failure = kWrite, .error = ENOSPC};
  EXPECT_THROW(write("new", kFaultyFiles), DeviceError);
}

}  // namespace
}  // namespace ingot::core
