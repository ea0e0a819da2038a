// SPDX-License-Identifier: Apache-2.0
// When each store gets an entry, for each policy.
#include "cache/write_policy.h"

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <mutex>

#include "cache/cache_use.h"
#include "cache/entry.h"
#include "tests/cache/folders.h"

namespace ingot::core {
namespace {

using testing::bytes_of;
using testing::kernel;
using testing::same;

constexpr std::chrono::milliseconds kPatience{60'000};

TEST(WritePolicies, AreReadFromTexts) {
  using enum WritePolicy;
  const auto parse = [](std::string_view text) {
    WritePolicies policies;
    EXPECT_TRUE(parse_write_policies(text, policies)) << text;
    return policies;
  };
  EXPECT_EQ(parse("back"), (WritePolicies{kBack, kBack, kBack}));
  EXPECT_EQ(parse("disk:read_only"), (WritePolicies{kReadOnly, kThrough, kThrough}));
  EXPECT_EQ(parse("server:none,disk:back"), (WritePolicies{kBack, kThrough, kNone}));
  EXPECT_EQ(parse("back,store:through"), (WritePolicies{kBack, kThrough, kBack}));
}

TEST(WritePolicies, RejectEveryOtherText) {
  for (const std::string_view text :
       {"", "Back", "back ", "disk", "disk:", ":back", "disk:back,", ",", "tape:back", "disk:back:server"}) {
    WritePolicies policies;
    EXPECT_FALSE(parse_write_policies(text, policies)) << text;
    EXPECT_EQ(policies, WritePolicies{}) << text;
  }
}

class MemoryTier final : public EntryTier {
 public:
  std::string name() const override { return "memory"; }
  Blob find(const Digest& key, const ReportProblem&) override {
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : found->second;
  }
  void put(const Digest& key, Bytes sealed, const ReportProblem&) override {
    const std::scoped_lock lock(mutex_);
    entries_[key] = std::make_shared<const std::vector<std::byte>>(sealed.begin(), sealed.end());
  }

 private:
  std::mutex mutex_;
  std::map<Digest, Blob> entries_;
};

// A disk and two tiers; what goes on in the background waits for `open`.
struct Stores {
  explicit Stores(WritePolicy disk, WritePolicy first, WritePolicy second) {
    use.disk = store;
    use.disk_policy = disk;
    use.tiers = {{tiers[0], first}, {tiers[1], second}};
    use.background = &background;
    background.add(0, [opened = gate.get_future().share()] { opened.wait(); });
  }
  ~Stores() { open(); }

  void open() {
    if (!is_open) gate.set_value();
    is_open = true;
    EXPECT_TRUE(background.wait(kPatience));
  }
  // "d12": which of the stores have it.
  std::string who_has(const CacheKey& key) {
    std::string found = store->find(key) != nullptr ? "d" : "";
    for (size_t i = 0; i < 2; ++i) {
      if (tiers[i]->find(key.digest, [](const std::string&) {}) != nullptr) found += std::to_string(i + 1);
    }
    return found;
  }
  static Blob value() { return std::make_shared<const std::vector<std::byte>>(bytes_of(50)); }

  testing::TemporaryFolder folder;
  std::shared_ptr<DiskStore> store =
      std::make_shared<DiskStore>(DiskStoreOptions{.folder = folder.path() / "c"});
  std::array<std::shared_ptr<MemoryTier>, 2> tiers = {std::make_shared<MemoryTier>(),
                                                      std::make_shared<MemoryTier>()};
  std::promise<void> gate;
  bool is_open = false;
  BackgroundWork background{1 << 20};
  CacheUse use;
};

TEST(WritePolicy, DecidesWhenEachStoreGetsAnEntry) {
  constexpr std::array kPolicies = {WritePolicy::kThrough, WritePolicy::kBack, WritePolicy::kReadOnly};
  for (const WritePolicy disk : kPolicies) {
    for (const WritePolicy first : kPolicies) {
      for (const WritePolicy second : kPolicies) {
        const auto expected = [&](auto... which) {
          std::string names;
          const auto has = [&](WritePolicy policy) { return ((policy == which) || ...); };
          if (has(disk)) names += "d";
          if (has(first)) names += "1";
          if (has(second)) names += "2";
          return names;
        };
        Stores stores(disk, first, second);
        stores.use.put(kernel("a"), Stores::value());
        EXPECT_EQ(stores.who_has(kernel("a")), expected(WritePolicy::kThrough));
        stores.open();
        EXPECT_EQ(stores.who_has(kernel("a")), expected(WritePolicy::kThrough, WritePolicy::kBack));
      }
    }
  }
}

TEST(WritePolicy, DecidesWhatIsKeptAboveWhereAnEntryWasFound) {
  using enum WritePolicy;
  const auto filled = [](WritePolicy disk, WritePolicy first, bool waits) {
    Stores stores(disk, first, kReadOnly);
    stores.tiers[1]->put(kernel("a").digest, seal_entry(kernel("a"), *Stores::value()), {});
    EXPECT_TRUE(same(stores.use.find(kernel("a")).bytes, bytes_of(50)));
    if (waits) stores.open();
    return stores.who_has(kernel("a"));
  };
  EXPECT_EQ(filled(kThrough, kThrough, false), "d12");
  EXPECT_EQ(filled(kBack, kThrough, false), "12");
  EXPECT_EQ(filled(kBack, kReadOnly, true), "d2");
  EXPECT_EQ(filled(kReadOnly, kBack, false), "2");
  EXPECT_EQ(filled(kReadOnly, kBack, true), "12");
}

TEST(WritePolicy, HoldsALeaseUntilOthersCanFindTheEntry) {
  for (const WritePolicy policy : {WritePolicy::kThrough, WritePolicy::kBack}) {
    Stores stores(WritePolicy::kThrough, policy, policy);
    auto lease = std::make_shared<int>(0);
    const std::weak_ptr<int> watch = lease;
    stores.use.put(kernel("a"), Stores::value(), std::move(lease));
    EXPECT_EQ(watch.expired(), policy == WritePolicy::kThrough);
    stores.open();
    EXPECT_TRUE(watch.expired());
  }
}

TEST(WritePolicy, WritesAtOnceWhatTheBackgroundDoesNotTake) {
  Stores stores(WritePolicy::kBack, WritePolicy::kBack, WritePolicy::kBack);
  while (stores.background.add(1 << 19, [] {})) {
  }
  stores.use.put(kernel("a"), std::make_shared<const std::vector<std::byte>>(1 << 20));
  EXPECT_EQ(stores.who_has(kernel("a")), "d12");
  stores.use.background = nullptr;
  stores.use.put(kernel("b"), Stores::value());
  EXPECT_EQ(stores.who_has(kernel("b")), "d12");
}

TEST(WritePolicy, OfAStoreThatIsOnlyReadChangesNothingInItsFolder) {
  const testing::TemporaryFolder folder;
  DiskStoreOptions options{.folder = folder.path() / "c"};
  DiskStore writer(options);
  writer.put(kernel("good"), bytes_of(10));
  writer.put(kernel("bad"), bytes_of(10));
  const auto path_of = [&](std::string_view text) {
    const std::string name = hex(kernel(text).digest);
    return folder.path() / "c" / name.substr(0, 2) / name.substr(2);
  };
  std::filesystem::resize_file(path_of("bad"), 20);
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(100);
  for (const char* text : {"good", "bad"}) std::filesystem::last_write_time(path_of(text), old);
  options.read_only = true;
  DiskStore reader(options);
  EXPECT_TRUE(same(reader.find(kernel("good")), bytes_of(10)));
  EXPECT_NE(reader.map(kernel("good")).file, nullptr);
  EXPECT_EQ(reader.find(kernel("bad")), nullptr);
  reader.put(kernel("new"), bytes_of(10));
  reader.collect(0);
  EXPECT_FALSE(reader.remove(hex(kernel("good").digest)));
  EXPECT_EQ(reader.list().size(), 2u);
  EXPECT_EQ(std::filesystem::last_write_time(path_of("good")), old);
  DiskStore nowhere({.folder = folder.path() / "missing", .read_only = true});
  EXPECT_EQ(nowhere.find(kernel("good")), nullptr);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "missing"));
}

}  // namespace
}  // namespace ingot::core
