// SPDX-License-Identifier: Apache-2.0
#include "cache/bundle.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <cstring>

#include "cache/nearest_entry.h"
#include "support/error.h"
#include "tests/cache/folders.h"

namespace ingot::core {
namespace {

using testing::bytes_of;
using ::testing::HasSubstr;
using testing::kernel;
using testing::same;
using testing::TemporaryFolder;

constexpr size_t kBundleHeader = 16;

DiskStore store_in(const std::filesystem::path& folder) {
  return DiskStore({.folder = folder, .create = true, .limit = 1 << 20, .report = {}, .seconds = {}});
}

std::vector<std::byte> bundle_of(DiskStore& store) {
  std::vector<std::byte> bytes;
  write_bundle(store, [&](Bytes part) { bytes.insert(bytes.end(), part.begin(), part.end()); });
  return bytes;
}

TEST(Bundle, BringsAllEntriesToAnotherFolder) {
  const TemporaryFolder folder;
  DiskStore from = store_in(folder.path() / "from"), to = store_in(folder.path() / "to");
  from.put(kernel("a"), bytes_of(10, 1));
  from.put(make_key(EntryKind::kEngine, "b"), bytes_of(3000, 2));
  EXPECT_EQ(add_bundle(to, bundle_of(from)).entries, 2u);
  EXPECT_TRUE(same(to.find(kernel("a")), bytes_of(10, 1)));
  EXPECT_TRUE(same(to.find(make_key(EntryKind::kEngine, "b")), bytes_of(3000, 2)));
}

// Whatever byte is changed and wherever it ends: nothing is added.
TEST(Bundle, DamagedOnesAddNothing) {
  const TemporaryFolder folder;
  DiskStore from = store_in(folder.path() / "from"), to = store_in(folder.path() / "to");
  from.put(kernel("a"), bytes_of(40));
  from.put(kernel("b"), bytes_of(50));
  const std::vector<std::byte> whole = bundle_of(from);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::vector<std::byte> damaged = whole;
    damaged[i] ^= std::byte{4};
    EXPECT_THROW(add_bundle(to, damaged), UserError) << i;
  }
  uint64_t first = 0;  // length of the first entry
  std::memcpy(&first, whole.data() + kBundleHeader, sizeof(first));
  for (size_t size = 0; size < whole.size(); ++size) {
    const bool is_between = size == kBundleHeader || size == kBundleHeader + sizeof(first) + first;
    if (is_between) continue;  // a shorter bundle, but a whole one
    EXPECT_THROW(add_bundle(to, Bytes(whole).first(size)), UserError) << size;
  }
  EXPECT_TRUE(to.list().empty());
}

TEST(ExplainMiss, NamesTheFirstLineThatDiffers) {
  const TemporaryFolder folder;
  DiskStore store = store_in(folder.path() / "cache");
  const auto key = [](std::string_view text) { return make_key(EntryKind::kEngine, text); };
  EXPECT_EQ(explain_miss(store, key("x")), "there is no engine yet");
  store.put(key("ingot 1\ntarget v4\ngraph {\na\nb\nc\n}\n"), bytes_of(1));
  store.put(key("ingot 1\ntarget v4\ngraph {\nx\ny\nz\n}\n"), bytes_of(1));
  store.put(kernel("ingot 1\ntarget v3\ngraph {\na\nb\nc\n}\n"), bytes_of(1));
  EXPECT_THAT(explain_miss(store, key("ingot 1\ntarget v3\ngraph {\na\nb\nc\n}\n")),
              HasSubstr("of 2 kept ones the most similar has 'target v4' where this one has 'target v3'"));
  EXPECT_THAT(explain_miss(store, key("ingot 1\ntarget v4\ngraph {\nx\ny\n")),
              HasSubstr("has 'z' where this one has nothing"));
}

TEST(ExplainMiss, NamesTheWordsThatDiffer) {
  const TemporaryFolder folder;
  DiskStore store = store_in(folder.path() / "cache");
  const auto key = [](std::string_view target) {
    return make_key(EntryKind::kEngine, fmt::format("ingot 1\ntarget {}, code 1\ngraph\n", target));
  };
  store.put(key("cpu:v4 level=3 numerics=default"), bytes_of(1));
  store.put(key("cpu:v3 level=3 numerics=default"), bytes_of(1));  // more recent, and less similar
  const auto miss = [&](std::string_view target) { return explain_miss(store, key(target)); };
  EXPECT_THAT(miss("cpu:v4 level=1 numerics=default"),
              HasSubstr("has 'target ... level=3' where this one has 'target ... level=1'"));
  EXPECT_THAT(miss("cpu:v2 level=3 numerics=default"), HasSubstr("where this one has 'target cpu:v2'"));
  EXPECT_THAT(miss("cpu:v4 level=3 sparse numerics=default"),
              HasSubstr("has 'target ...' where this one has 'target ... sparse'"));
}

}  // namespace
}  // namespace ingot::core
