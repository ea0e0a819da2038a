// SPDX-License-Identifier: Apache-2.0
// The C++ header for building.
#include <gmock/gmock.h>

#include <map>
#include <mutex>

#include "ingot/compile.h"
#include "tests/api/fixtures.h"

namespace ingot {
namespace {

#if INGOT_HAS_LLVM  // the default device's backend
// A caller's store: what one session made is found by the next, which has an empty cache.
TEST(Cpp, BuildsFromAStoreOfTheCaller) {
  struct Entries {
    std::mutex mutex;
    std::map<std::string, std::string> kept;
    int found = 0;
  } entries;
  const ingot_cache_store store{
      .struct_size = sizeof(ingot_cache_store),
      .user = &entries,
      .load = [](void* user, const char* key, ingot_receive receive, void* receiver) -> int32_t {
        auto& own = *static_cast<Entries*>(user);
        const std::lock_guard lock(own.mutex);
        const auto entry = own.kept.find(key);
        if (entry == own.kept.end()) return 0;
        ++own.found;
        receive(receiver, entry->second.data(), entry->second.size());
        return 0;
      },
      .save = [](void* user, const char* key, const void* data, size_t size, ingot_receive,
                 void*) -> int32_t {
        auto& own = *static_cast<Entries*>(user);
        const std::lock_guard lock(own.mutex);
        own.kept[key].assign(static_cast<const char*>(data), size);
        return 0;
      }};
  const core::testing::TemporaryFolder folder;
  for (const char* name : {"first", "second"}) {
    const Session session(64 << 20);
    CompileOptions options;
    options.values = {{"engine_cache_dir", (folder.path() / name).string()}};
    options.session = &session;
    options.store = &store;
    compile(INGOT_SOURCE_DIR "/tests/data/pt2/image.pt2", options);
    EXPECT_FALSE(entries.kept.empty());
    EXPECT_EQ(entries.found > 0, name == std::string_view("second"));
  }
}
#endif

}  // namespace
}  // namespace ingot
