// SPDX-License-Identifier: Apache-2.0
// Processes that share a cache are killed at any instant: readers find whole entries or none (C1). The same
// harness around a store that writes in place finds torn ones, or it would prove nothing (C2).
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "cache/disk_store.h"
#include "cache/entry.h"
#include "tests/cache/folders.h"
#include "tests/support/long_mode.h"

namespace ingot::core {
namespace {

using testing::kernel;
using testing::TemporaryFolder;

constexpr int kProcesses = 8, kKeys = 24;
constexpr size_t kLargest = 20'000;
constexpr uint64_t kLimit = 120'000;

// What all processes count, in memory that they share.
struct Counts {
  std::atomic<uint64_t> hits{0}, corrupt{0};
};

struct Shared {
  Shared()
      : counts(new(::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                   Counts) {}
  ~Shared() { ::munmap(counts, sizeof(Counts)); }
  Counts* counts;
};

CacheKey shared_key(int number) { return kernel("key " + std::to_string(number)); }

// Every value of a key is one of its two: so entries are replaced by others.
std::vector<std::byte> shared_value(int number, uint32_t form) {
  std::mt19937 random(static_cast<uint32_t>(number) * 2 + form % 2);
  std::vector<std::byte> value(kLargest / 2 + random() % (kLargest / 2));
  for (std::byte& byte : value) byte = static_cast<std::byte>(random());
  return value;
}

struct Kept {
  std::function<Blob(int)> get;
  std::function<void(int, const std::vector<std::byte>&)> put;
};

[[noreturn]] void use_until_killed(const Kept& kept, uint32_t seed, Counts& counts) {
  for (std::mt19937 random(seed);;) {
    const int number = static_cast<int>(random() % kKeys);
    if (random() % 3 == 0) {
      kept.put(number, shared_value(number, random()));
    } else if (const Blob found = kept.get(number)) {
      const bool right = *found == shared_value(number, 0) || *found == shared_value(number, 1);
      ++(right ? counts.hits : counts.corrupt);
    }
  }
}

pid_t start_process(const Kept& kept, uint32_t seed, Counts& counts) {
  const pid_t child = ::fork();
  if (child == 0) use_until_killed(kept, seed, counts);
  return child;
}

void kill_often(const Kept& kept, int kills, Counts& counts) {
  std::mt19937 random(1);
  std::vector<pid_t> processes;
  for (int i = 0; i < kProcesses; ++i) processes.push_back(start_process(kept, random(), counts));
  const auto end = [](pid_t process) {
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
  };
  for (int i = 0; i < kills; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 6'000));
    pid_t& process = processes[random() % processes.size()];
    end(process);
    process = start_process(kept, random(), counts);
  }
  for (const pid_t process : processes) end(process);
}

int kills() { return core::test::is_long_mode() ? 40'000 : 4000; }

TEST(DiskKills, NoReaderFindsHalfAnEntry) {
  const TemporaryFolder folder;
  const Shared shared;
  const auto store = [&] { return DiskStore({.folder = folder.path() / "c", .limit = kLimit}); };
  const Kept kept{
      .get = [&](int number) { return store().find(shared_key(number)); },
      .put = [&](int number,
                 const std::vector<std::byte>& value) { store().put(shared_key(number), value); }};
  kill_often(kept, kills(), *shared.counts);
  EXPECT_EQ(shared.counts->corrupt, 0u);
  EXPECT_GT(shared.counts->hits, 1000u);
  uint64_t bytes = 0;
  for (const StoredEntry& entry : store().list()) {
    bytes += entry.bytes;
    const Blob file = store().read(entry.digest);
    EXPECT_TRUE(file != nullptr && std::holds_alternative<SealedEntry>(open_entry(*file)));
  }
  EXPECT_LE(bytes, kLimit + kLargest);
}

TEST(DiskKills, TheSameFindsTornFilesOfAStoreThatWritesInPlace) {
  const TemporaryFolder folder;
  const Shared shared;
  const auto path = [&](int number) { return folder.path() / std::to_string(number); };
  const Kept kept{.get = [&](int number) -> Blob {
                    std::ifstream file(path(number), std::ios::binary);
                    if (!file) return nullptr;
                    const std::string text((std::istreambuf_iterator<char>(file)), {});
                    const Bytes bytes = as_bytes(text);
                    return std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
                  },
                  .put =
                      [&](int number, const std::vector<std::byte>& value) {
                        std::ofstream file(path(number), std::ios::binary | std::ios::trunc);
                        file.write(reinterpret_cast<const char*>(value.data()),
                                   static_cast<std::streamsize>(value.size()));
                      }};
  kill_often(kept, 50, *shared.counts);
  EXPECT_GT(shared.counts->corrupt, 0u);
}

}  // namespace
}  // namespace ingot::core
