// SPDX-License-Identifier: Apache-2.0
#include "api/compiler/caller_tier.h"

#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "api/runtime/checks.h"

namespace ingot::core::api {
namespace {

constexpr size_t kFirstStore = offsetof(ingot_cache_store, save) + sizeof(ingot_cache_store::save);

struct Received {
  std::shared_ptr<std::vector<std::byte>> bytes;

  static void receive(void* receiver, const void* data, size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    static_cast<Received*>(receiver)->bytes = std::make_shared<std::vector<std::byte>>(first, first + size);
  }
  std::string_view text() const {
    if (bytes == nullptr) return "it failed";
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  }
};

}  // namespace

CallerTier::CallerTier(const ingot_cache_store& store)
    : store_(read_struct(&store, kFirstStore, "ingot_cache_store")) {
  require(reinterpret_cast<const void*>(store_.load), "load");
  require(reinterpret_cast<const void*>(store_.save), "save");
}

Blob CallerTier::find(const Digest& key, const ReportProblem& report) {
  Received received;
  if (store_.load(store_.user, hex(key).c_str(), &Received::receive, &received) == 0) return received.bytes;
  report(fmt::format("cache: cannot load from {}: {}", name(), received.text()));
  return nullptr;
}

void CallerTier::put(const Digest& key, Bytes sealed, const ReportProblem& report) {
  Received received;
  if (store_.save(store_.user, hex(key).c_str(), sealed.data(), sealed.size(), &Received::receive,
                  &received) != 0)
    report(fmt::format("cache: cannot save in {}: {}", name(), received.text()));
}

}  // namespace ingot::core::api
