// SPDX-License-Identifier: Apache-2.0
#include "cache/cache.h"

#include <utility>

namespace ingot::core {

FoundEntry Cache::get(const CacheKey& key, const CacheUse& use, const Make& make) {
  if (!use.reuse) return find_or_make(key, use, make);
  std::unique_lock lock(mutex_);
  for (;;) {
    // Under the lock: a thread that landed between the look and the wait would not be seen.
    if (Blob found = memory_.find(key)) {
      ++from_memory_;
      return {std::move(found), Origin::kMemory};
    }
    const auto [entry, is_first] = flights_.try_emplace(key.text);
    if (is_first) {
      const std::shared_ptr<Flight> flight = entry->second = std::make_shared<Flight>();
      lock.unlock();
      return fly(key, use, make, flight);
    }
    const std::shared_ptr<Flight> flight = entry->second;
    landed_.wait(lock, [&] { return flight->is_over; });
    if (flight->result == nullptr) continue;
    ++from_other_threads_;
    return {flight->result, Origin::kOtherThread};
  }
}

FoundEntry Cache::fly(const CacheKey& key, const CacheUse& use, const Make& make,
                      const std::shared_ptr<Flight>& flight) {
  try {
    FoundEntry result = find_or_make(key, use, make);
    land(key, flight, result.bytes);
    return result;
  } catch (...) {
    land(key, flight, nullptr);
    throw;
  }
}

FoundEntry Cache::find_or_make(const CacheKey& key, const CacheUse& use, const Make& make) {
  if (use.reuse) {
    if (FoundEntry found = use.find(key); found.bytes != nullptr) {
      ++(found.origin == Origin::kDisk ? from_disk_ : from_tiers_);
      memory_.put(key, found.bytes);
      return found;
    }
  }
  Blob made = std::make_shared<const std::vector<std::byte>>(make());
  ++made_;
  if (use.keep) {
    memory_.put(key, made);
    use.put(key, made);
  }
  return {std::move(made), Origin::kMade};
}

Blob Cache::find(const CacheKey& key, const CacheUse& use) {
  if (Blob known = memory_.find(key)) return known;
  Blob found = use.find(key).bytes;
  if (found != nullptr) keep(key, found);
  return found;
}

void Cache::keep(const CacheKey& key, Blob value) {
  if (has_room(value->size())) memory_.put(key, std::move(value));
}

void Cache::land(const CacheKey& key, const std::shared_ptr<Flight>& flight, Blob result) {
  const std::scoped_lock lock(mutex_);
  flight->is_over = true;
  flight->result = std::move(result);
  flights_.erase(key.text);
  landed_.notify_all();
}

CacheCounts Cache::counts() const {
  return {made_.load(), from_memory_.load(), from_disk_.load(), from_tiers_.load(),
          from_other_threads_.load()};
}

}  // namespace ingot::core
