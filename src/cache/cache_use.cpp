// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_use.h"

#include <fmt/core.h>

#include "cache/entry.h"

namespace ingot::core {

ReportProblem CacheUse::report() const {
  if (problems == nullptr) return [](const std::string&) {};
  return [own = problems](const std::string& line) { own->add(line); };
}

FoundEntry CacheUse::find(const CacheKey& key) const {
  FoundEntry found;
  if (disk != nullptr) found = {disk->find(key), Origin::kDisk};
  for (size_t i = 0; i < tiers.size() && found.bytes == nullptr; ++i) {
    found = {find_in(*tiers[i], key), Origin::kTier};
    if (found.bytes == nullptr || !keep) continue;
    if (disk != nullptr) disk->put(key, *found.bytes);
    for (size_t above = 0; above < i; ++above)
      tiers[above]->put(key.digest, seal_entry(key, *found.bytes), report());
  }
  if (problems != nullptr) problems->check();
  return found;
}

Blob CacheUse::find_in(EntryTier& tier, const CacheKey& key) const {
  const Blob sealed = tier.find(key.digest, report());
  if (sealed == nullptr) return nullptr;
  const auto value = open_entry_of(key, *sealed);
  if (const auto* bytes = std::get_if<Bytes>(&value))
    return std::make_shared<const std::vector<std::byte>>(bytes->begin(), bytes->end());
  report()(fmt::format("cache: cannot use entry {} of {}: {}", hex(key.digest), tier.name(),
                       std::get<std::string_view>(value)));
  return nullptr;
}

void CacheUse::put(const CacheKey& key, Bytes value) const {
  if (disk != nullptr) disk->put(key, value);
  const std::vector<std::byte> sealed = tiers.empty() ? std::vector<std::byte>() : seal_entry(key, value);
  for (const auto& tier : tiers) tier->put(key.digest, sealed, report());
  if (problems != nullptr) problems->check();
}

}  // namespace ingot::core
