// SPDX-License-Identifier: Apache-2.0
#include "cache/cache.h"

#include <utility>

namespace ingot::core {

Cache::Result Cache::get(const CacheKey& key, const std::function<std::vector<std::byte>()>& make) {
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
      return make_alone(key, make, flight);
    }
    const std::shared_ptr<Flight> flight = entry->second;
    landed_.wait(lock, [&] { return flight->is_over; });
    if (flight->result == nullptr) continue;
    ++from_other_threads_;
    return {flight->result, Origin::kOtherThread};
  }
}

Cache::Result Cache::make_alone(const CacheKey& key, const std::function<std::vector<std::byte>()>& make,
                                const std::shared_ptr<Flight>& flight) {
  Blob made;
  try {
    made = std::make_shared<const std::vector<std::byte>>(make());
    memory_.put(key, made);
  } catch (...) {
    land(key, flight, nullptr);
    throw;
  }
  land(key, flight, made);
  ++made_;
  return {std::move(made), Origin::kMade};
}

void Cache::land(const CacheKey& key, const std::shared_ptr<Flight>& flight, Blob result) {
  const std::scoped_lock lock(mutex_);
  flight->is_over = true;
  flight->result = std::move(result);
  flights_.erase(key.text);
  landed_.notify_all();
}

CacheCounts Cache::counts() const { return {made_.load(), from_memory_.load(), from_other_threads_.load()}; }

}  // namespace ingot::core
