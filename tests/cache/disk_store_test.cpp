// SPDX-License-Identifier: Apache-2.0
// The disk tier: what is kept, what is refused, what goes first.
#include "cache/disk_store.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include "cache/entry.h"
#include "tests/cache/folders.h"

namespace ingot::core {
namespace {

using testing::bytes_of;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::kernel;
using testing::same;
using testing::TemporaryFolder;

class Disk : public ::testing::Test {
 protected:
  DiskStore store(uint64_t limit = 1 << 20) {
    return DiskStore({.folder = root_,
                      .limit = limit,
                      .report = [this](const std::string& line) { lines_.push_back(line); },
                      .seconds = [this] { return now_; }});
  }
  std::filesystem::path path_of(const CacheKey& key) const {
    const std::string digest = hex(key.digest);
    return root_ / digest.substr(0, 2) / digest.substr(2);
  }
  std::vector<std::byte> content(const CacheKey& key) const {
    std::ifstream file(path_of(key), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const Bytes bytes = as_bytes(text);
    return {bytes.begin(), bytes.end()};
  }
  void overwrite(const CacheKey& key, Bytes bytes) const {
    std::ofstream file(path_of(key), std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

  TemporaryFolder folder_;
  const std::filesystem::path root_ = folder_.path() / "cache";
  std::vector<std::string> lines_;
  uint64_t now_ = 1'800'000'000;
};

TEST_F(Disk, KeepsEntriesForOtherProcesses) {
  EXPECT_EQ(store().find(kernel("a")), nullptr);
  store().put(kernel("a"), bytes_of(100, 1));
  store().put(make_key(EntryKind::kEngine, "a"), bytes_of(100, 2));
  EXPECT_TRUE(same(store().find(kernel("a")), bytes_of(100, 1)));
  EXPECT_TRUE(same(store().find(make_key(EntryKind::kEngine, "a")), bytes_of(100, 2)));
  EXPECT_EQ(store().find(kernel("b")), nullptr);
  EXPECT_TRUE(lines_.empty());
  struct stat facts{};
  ASSERT_EQ(::stat(root_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700u);
}

TEST_F(Disk, EveryFlippedBitIsAMiss) {
  const CacheKey key = kernel("the text");
  store().put(key, bytes_of(40, 1));
  const std::vector<std::byte> whole = content(key);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::vector<std::byte> damaged = whole;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    overwrite(key, damaged);
    ASSERT_EQ(store().find(key), nullptr) << bit;
    ASSERT_FALSE(std::filesystem::exists(path_of(key))) << "what is damaged goes";
  }
  EXPECT_EQ(lines_.size(), whole.size() * 8);
}

TEST_F(Disk, EveryOtherLengthIsAMiss) {
  const CacheKey key = kernel("the text");
  store().put(key, bytes_of(40, 1));
  std::vector<std::byte> whole = content(key);
  for (size_t length = 0; length < whole.size(); ++length) {
    overwrite(key, Bytes(whole).first(length));
    ASSERT_EQ(store().find(key), nullptr) << length;
  }
  whole.resize(whole.size() + 1);
  overwrite(key, whole);
  EXPECT_EQ(store().find(key), nullptr);
}

// Without syncing, a crash of the system may lose any blocks of what was written: C3.
TEST_F(Disk, EveryLostOrTornBlockIsAMiss) {
  constexpr size_t kBlock = 512;
  const CacheKey key = kernel("the text");
  store().put(key, bytes_of(5 * kBlock, 1));
  const std::vector<std::byte> whole = content(key);
  const size_t blocks = (whole.size() + kBlock - 1) / kBlock;
  for (uint32_t lost = 1; lost < 1u << blocks; ++lost) {
    std::vector<std::byte> torn = whole;
    for (size_t block = 0; block < blocks; ++block) {
      const size_t begin = block * kBlock, end = std::min(whole.size(), begin + kBlock);
      if ((lost >> block & 1) != 0) std::memset(torn.data() + begin, 0, end - begin);
    }
    if (torn == whole) continue;
    overwrite(key, torn);
    ASSERT_EQ(store().find(key), nullptr) << lost;
  }
}

TEST_F(Disk, AnEntryOfAnotherKeyIsAMiss) {
  store().put(kernel("a"), bytes_of(40, 1));
  const std::vector<std::byte> other = content(kernel("a"));
  std::filesystem::create_directories(path_of(kernel("b")).parent_path());
  overwrite(kernel("b"), other);
  EXPECT_EQ(store().find(kernel("b")), nullptr);
  EXPECT_THAT(lines_, Contains(HasSubstr("something else")));
}

// What is mapped is checked like what is read.
TEST_F(Disk, MapsValuesInPlace) {
  const CacheKey key = make_key(EntryKind::kWeights, "the text");
  EXPECT_EQ(store().map(key).file, nullptr);
  const std::vector<std::byte> first = bytes_of(100, 1), second = bytes_of(5000, 2);
  store().put(key, std::array<Bytes, 3>{first, Bytes{}, second});
  const DiskStore::Mapped mapped = store().map(key);
  ASSERT_NE(mapped.file, nullptr);
  std::vector<std::byte> joined = first;
  joined.insert(joined.end(), second.begin(), second.end());
  EXPECT_TRUE(std::ranges::equal(mapped.value, joined));
  EXPECT_TRUE(same(store().find(key), joined));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(mapped.value.data()) % 4096, value_offset(key));
  store().collect(0);  // the name goes, what is mapped stays
  EXPECT_TRUE(std::ranges::equal(mapped.value, joined));
  EXPECT_EQ(store().map(key).file, nullptr);
  EXPECT_TRUE(lines_.empty());
}

TEST_F(Disk, NoDamagedValueIsMapped) {
  const CacheKey key = make_key(EntryKind::kWeights, "the text");
  store().put(key, bytes_of(40, 1));
  const std::vector<std::byte> whole = content(key);
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    std::vector<std::byte> damaged = whole;
    damaged[byte] ^= std::byte{4};
    overwrite(key, damaged);
    ASSERT_EQ(store().map(key).file, nullptr) << byte;
    overwrite(key, Bytes(whole).first(byte));
    ASSERT_EQ(store().map(key).file, nullptr) << byte;
  }
  EXPECT_EQ(lines_.size(), 2 * whole.size());
  std::filesystem::create_directory(path_of(key));
  EXPECT_EQ(store().map(key).file, nullptr);
}

TEST_F(Disk, AForeignFolderIsRefused) {
  std::filesystem::create_directories(root_);
  for (const mode_t mode : {0755, 0770, 0701}) {
    ASSERT_EQ(::chmod(root_.c_str(), mode), 0);
    store().put(kernel("a"), bytes_of(10, 1));
    EXPECT_EQ(store().find(kernel("a")), nullptr);
  }
  EXPECT_THAT(lines_, Contains(HasSubstr("chmod 700")));
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chmod(root_.c_str(), 0700), 0);
  ASSERT_EQ(::chown(root_.c_str(), 12345, 12345), 0);
  store().put(kernel("a"), bytes_of(10, 1));
  EXPECT_THAT(lines_, Contains(HasSubstr("another user")));
  EXPECT_TRUE(std::filesystem::is_empty(root_));
}

TEST_F(Disk, AFileInTheFoldersPlaceIsRefused) {
  std::ofstream(root_) << "text";
  store().put(kernel("a"), bytes_of(10, 1));
  EXPECT_EQ(store().find(kernel("a")), nullptr);
  EXPECT_THAT(lines_, Contains(HasSubstr("it is not a folder")));
}

std::string name(int number) { return "entry " + std::to_string(number); }

TEST_F(Disk, OneEntryGoesForOneThatComes) {
  store().put(kernel(name(0)), bytes_of(1000, 0));
  const uint64_t bytes = store().list().at(0).bytes + 1;  // a digit more in the last name
  for (int i = 1; i < 10; ++i, now_ += 100) store(10 * bytes).put(kernel(name(i)), bytes_of(1000, i));
  EXPECT_NE(store().find(kernel(name(0))), nullptr);  // used now: it is the newest
  now_ += 100;
  store(10 * bytes).put(kernel(name(10)), bytes_of(1000, 10));
  EXPECT_EQ(store().list().size(), 10u);
  EXPECT_EQ(store().find(kernel(name(1))), nullptr);
  for (const int kept : {0, 2, 9, 10}) EXPECT_NE(store().find(kernel(name(kept))), nullptr) << kept;
}

TEST_F(Disk, AnEntryThatIsSavedAgainCountsOnce) {
  store().put(kernel("a"), bytes_of(1000, 0));
  const uint64_t bytes = store().list().at(0).bytes;
  store(3 * bytes).put(kernel("b"), bytes_of(1000, 0));
  for (int i = 0; i < 20; ++i) store(3 * bytes).put(kernel("a"), bytes_of(1000, i));
  EXPECT_EQ(store().list().size(), 2u);
}

TEST_F(Disk, WhatIsLargerThanAllIsNotKept) {
  store(200).put(kernel("a"), bytes_of(1000, 0));
  EXPECT_TRUE(store().list().empty());
  EXPECT_THAT(lines_, Contains(HasSubstr("larger than the whole cache")));
}

TEST_F(Disk, ALostStateIsCountedAnew) {
  store().put(kernel("a"), bytes_of(1000, 0));
  const uint64_t bytes = store().list().at(0).bytes;
  for (const char* damage : {"", "short", "longer than the record of a state can be ............."}) {
    std::ofstream(root_ / "state", std::ios::trunc) << damage;
    for (int i = 0; i < 6; ++i) store(3 * bytes).put(kernel(name(i)), bytes_of(1000, i));
    EXPECT_LE(store().list().size(), 3u);
  }
}

// D5: a clock that jumps changes neither the order nor what is kept.
TEST_F(Disk, ClocksMayJump) {
  constexpr uint64_t kTenYears = 10ull * 365 * 24 * 3600;
  store().put(kernel(name(0)), bytes_of(1000, 0));
  const uint64_t limit = 4 * store().list().at(0).bytes;
  const uint64_t start = now_;
  for (const uint64_t now : {start + kTenYears, start - kTenYears, start + 50}) {
    now_ = now;
    for (int i = 1; i < 4; ++i, now_ += 100) store(limit).put(kernel(name(i)), bytes_of(1000, i));
    EXPECT_EQ(store().list().size(), 4u) << "nothing goes because of its age";
    for (int i = 0; i < 70; ++i) store(limit).put(kernel(name(3)), bytes_of(1000, 3));  // time passes
    EXPECT_NE(store(limit).find(kernel(name(0))), nullptr);
    store(limit).put(kernel("new"), bytes_of(1000, 9));
    EXPECT_NE(store(limit).find(kernel(name(0))), nullptr) << "it was used after the others";
    EXPECT_EQ(store(limit).find(kernel(name(1))), nullptr);
    store(limit).remove(hex(kernel("new").digest));
    store(limit).put(kernel(name(1)), bytes_of(1000, 1));
  }
}

TEST_F(Disk, FilesOfDeadWritersGo) {
  store().put(kernel("a"), bytes_of(10, 0));
  const std::filesystem::path folder = path_of(kernel("a")).parent_path();
  const auto dead = folder / "tmp-999999999-0123",
             alive = folder / ("tmp-" + std::to_string(::getpid()) + "-1"),
             young = folder / "tmp-999999998-0123";
  for (const auto& path : {dead, alive, young}) std::ofstream(path) << "half";
  for (const auto& path : {dead, alive}) kSystemFiles.set_modified(path.c_str(), now_ - 4000);
  kSystemFiles.set_modified(young.c_str(), now_ - 100);
  store().collect(1 << 20);
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(alive));
  EXPECT_TRUE(std::filesystem::exists(young));
  EXPECT_NE(store().find(kernel("a")), nullptr);
}

}  // namespace
}  // namespace ingot::core
