// SPDX-License-Identifier: Apache-2.0
#include "cache/cache.h"

#include <gtest/gtest.h>

#include <latch>
#include <random>
#include <stdexcept>
#include <thread>

#include "tests/cache/folders.h"

namespace ingot::core {
namespace {

using testing::bytes_of;
using testing::kernel;

std::vector<std::byte> random_bytes(size_t size, uint32_t seed) {
  std::minstd_rand random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() >> 8);
  return bytes;
}

Origin ask(Cache& cache, std::string_view text, size_t size = 100) {
  return cache.get(kernel(text), {}, [&] { return bytes_of(size); }).origin;
}

TEST(CacheKey, TellsKindsApart) {
  EXPECT_NE(make_key(EntryKind::kKernel, "text").digest, make_key(EntryKind::kEngine, "text").digest);
  EXPECT_NE(make_key(EntryKind::kKernel, "").digest, Digest{});
}

TEST(Cache, MakesAnEntryOnce) {
  Cache cache(1 << 20);
  EXPECT_EQ(ask(cache, "a"), Origin::kMade);
  EXPECT_EQ(ask(cache, "a"), Origin::kMemory);
  EXPECT_EQ(ask(cache, "b"), Origin::kMade);
  EXPECT_EQ(cache.counts().made, 2u);
  EXPECT_EQ(cache.counts().from_memory, 1u);
  EXPECT_EQ(cache.get(kernel("a"), {}, [] { return bytes_of(1); }).bytes->size(), 100u);
}

TEST(Cache, UsesAnEntryOnlyIfItsWholeTextIsEqual) {
  MemoryStore store(1 << 20);
  CacheKey first = kernel("a"), second = kernel("b");
  second.digest = first.digest;  // as if the digest had been broken
  store.put(first, std::make_shared<std::vector<std::byte>>(bytes_of(1)));
  EXPECT_NE(store.find(first), nullptr);
  EXPECT_EQ(store.find(second), nullptr);
}

TEST(MemoryStore, DropsWhatWasUsedLeastRecently) {
  Cache cache(3000);
  const auto ask_dense = [&](std::string_view text) {
    return cache.get(kernel(text), {}, [] { return random_bytes(1000, 1); }).origin;
  };
  for (const char* text : {"a", "b"}) ask_dense(text);
  EXPECT_EQ(ask_dense("a"), Origin::kMemory);
  ask_dense("c");  // takes the place of b
  EXPECT_EQ(ask_dense("a"), Origin::kMemory);
  EXPECT_EQ(ask_dense("b"), Origin::kMade);
  const MemoryStore::Size size = cache.memory().size();
  EXPECT_LE(size.bytes, 3000u);
  EXPECT_EQ(size.entries, 2u);
  EXPECT_EQ(size.evicted, 2u);
}

TEST(MemoryStore, KeepsNothingThatIsLargerThanAll) {
  Cache cache(500);
  ask(cache, "small", 10);
  EXPECT_EQ(ask(cache, "large", 1000), Origin::kMade);
  EXPECT_EQ(ask(cache, "large", 1000), Origin::kMade);
  EXPECT_EQ(ask(cache, "small", 10), Origin::kMemory);
  Cache none(0);
  EXPECT_EQ(ask(none, "a", 0), Origin::kMade);
  EXPECT_EQ(ask(none, "a", 0), Origin::kMade);
}

// Values of which half is zero, which compress to half of their length.
std::vector<std::byte> half_random(uint32_t seed) {
  std::vector<std::byte> bytes = random_bytes(1000, seed);
  bytes.resize(2000);
  return bytes;
}

TEST(MemoryStore, CompressesWhatWasUsedLeastRecently) {
  MemoryStore store(20'000);
  const auto key_of = [](uint32_t i) { return kernel("key " + std::to_string(i)); };
  const auto check = [&](uint32_t i) {
    const Blob found = store.find(key_of(i));
    return found != nullptr && *found == half_random(i);
  };
  for (uint32_t i = 0; i < 100; ++i) {
    store.put(key_of(i), std::make_shared<std::vector<std::byte>>(half_random(i)));
    EXPECT_LE(store.size().bytes, 20'000u);
    EXPECT_TRUE(check(i));
  }
  const MemoryStore::Size size = store.size();
  EXPECT_GT(size.entries, 12u) << "9 fit as they are";
  EXPECT_GT(size.compressed, 6u);
  EXPECT_EQ(size.evicted, 100 - size.entries);
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t i = 92; i < 100; ++i) EXPECT_TRUE(check(i)) << i;
  }
  CacheKey other = kernel("other");
  other.digest = key_of(90).digest;
  EXPECT_EQ(store.find(other), nullptr) << "the text decides, of a compressed entry too";
  EXPECT_LE(store.size().bytes, 20'000u);
}

TEST(MemoryStore, LeavesDenseEntriesAsTheyAre) {
  MemoryStore store(20'000);
  for (uint32_t i = 0; i < 100; ++i)
    store.put(kernel("key " + std::to_string(i)),
              std::make_shared<std::vector<std::byte>>(random_bytes(2000, i)));
  EXPECT_EQ(store.size().compressed, 0u);
  EXPECT_GE(store.size().entries, 8u);
  EXPECT_LE(store.size().bytes, 20'000u);
}

TEST(MemoryStore, ReplacesAnEntry) {
  MemoryStore store(10000);
  for (size_t i = 0; i < 3; ++i)
    store.put(kernel("a"), std::make_shared<std::vector<std::byte>>(bytes_of(2000)));
  EXPECT_EQ(store.size().entries, 1u);
  EXPECT_LT(store.size().bytes, 3000u);
  store.clear();
  EXPECT_EQ(store.size().bytes, 0u);
  EXPECT_EQ(store.find(kernel("a")), nullptr);
}

constexpr int kThreads = 8;

// Every thread begins when all are there.
template <typename Work>
void run_together(Work work) {
  std::latch start(kThreads);
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      work(i);
    });
  }
}

TEST(Cache, OneOfManyThreadsMakesWhatAllWant) {
  for (const size_t capacity : {size_t{1} << 20, size_t{0}}) {  // those that wait need no memory for it
    Cache cache(capacity);
    std::atomic<int> making{0}, most{0}, wrong{0};
    run_together([&](int) {
      for (int key = 0; key < 20; ++key) {
        const auto result = cache.get(kernel(std::to_string(key)), {}, [&] {
          most = std::max(most.load(), ++making);
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          --making;
          return bytes_of(50, key);
        });
        if (*result.bytes != bytes_of(50, key)) ++wrong;
      }
    });
    EXPECT_EQ(wrong, 0);
    EXPECT_TRUE(capacity == 0 || cache.counts().made == 20u);
    const CacheCounts counts = cache.counts();
    EXPECT_EQ(counts.made + counts.from_memory + counts.from_other_threads, 20u * kThreads);
  }
}

TEST(Cache, AnotherThreadTriesWhereOneFailed) {
  Cache cache(1 << 20);
  std::atomic<int> attempts{0}, failures{0}, successes{0};
  run_together([&](int) {
    try {
      cache.get(kernel("a"), {}, [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        if (++attempts <= 3) throw std::runtime_error("no");
        return bytes_of(10);
      });
      ++successes;
    } catch (const std::runtime_error&) {
      ++failures;
    }
  });
  EXPECT_EQ(failures, 3);
  EXPECT_EQ(successes, kThreads - 3);
  EXPECT_EQ(attempts, 4);
}

TEST(Cache, AsksTheDiskAfterMemory) {
  const testing::TemporaryFolder folder;
  const CacheUse use{.disk = std::make_shared<DiskStore>(DiskStoreOptions{.folder = folder.path() / "c"})};
  const auto ask_with = [&](Cache& cache, const CacheUse& given) {
    return cache.get(kernel("a"), given, [] { return bytes_of(10); }).origin;
  };
  Cache first(1000), second(1000);
  EXPECT_EQ(ask_with(first, {.keep = false, .disk = use.disk}), Origin::kMade);
  EXPECT_EQ(ask_with(first, use), Origin::kMade);
  EXPECT_EQ(ask_with(second, use), Origin::kDisk);
  EXPECT_EQ(ask_with(second, use), Origin::kMemory);
  EXPECT_EQ(ask_with(second, {.reuse = false, .disk = use.disk}), Origin::kMade);
  EXPECT_EQ(second.counts().from_disk, 1u);
}

}  // namespace
}  // namespace ingot::core
