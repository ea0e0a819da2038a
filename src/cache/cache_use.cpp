// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_use.h"

#include <algorithm>

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
    found = {find_in(*tiers[i].tier, key), Origin::kTier};
    if (found.bytes != nullptr && keep) put_above(i, key, found.bytes, {});
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

void CacheUse::put(const CacheKey& key, const Blob& value, std::shared_ptr<const void> held) const {
  put_above(tiers.size(), key, value, std::move(held));
  if (problems != nullptr) problems->check();
}

void CacheUse::put_above(size_t count, const CacheKey& key, const Blob& value,
                         std::shared_ptr<const void> held) const {
  write(WritePolicy::kThrough, count, key, *value);
  if (!has(WritePolicy::kBack, count)) return;
  const auto work = [own = *this, count, key, value, kept = std::move(held)] {
    own.write(WritePolicy::kBack, count, key, *value);
  };
  if (background == nullptr || !background->add(value->size(), work)) work();
}

bool CacheUse::has(WritePolicy policy, size_t count) const {
  if (disk != nullptr && disk_policy == policy) return true;
  return std::any_of(tiers.begin(), tiers.begin() + static_cast<ptrdiff_t>(count),
                     [&](const UsedTier& used) { return used.policy == policy; });
}

void CacheUse::write(WritePolicy policy, size_t count, const CacheKey& key, Bytes value) const {
  if (!has(policy, count)) return;
  if (disk != nullptr && disk_policy == policy) disk->put(key, value);
  std::vector<std::byte> sealed;  // made for the first tier, used by all
  for (size_t i = 0; i < count; ++i) {
    if (tiers[i].policy != policy) continue;
    if (sealed.empty()) sealed = seal_entry(key, value);
    tiers[i].tier->put(key.digest, sealed, report());
  }
}

}  // namespace ingot::core
