// SPDX-License-Identifier: Apache-2.0
// Kernels -> kernel binaries, on several threads, while the caller goes on lowering and planning.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cache/cache.h"
#include "engine/engine_data.h"

namespace ingot::core {

// Where images are looked up; null: nowhere.
struct ImageCache {
  Cache* cache = nullptr;
  CacheUse use;
};

struct CompiledImages {
  std::vector<Image> images;    // in the order in which they were added
  std::vector<uint8_t> is_new;  // one per image: 0 if it was found in the cache, or made by another build
};

// What is added is compiled, unless the cache has it, from then on. For one caller.
class ImageWork {
 public:
  // `threads` include the caller's, which compiles only in `finish`.
  ImageWork(ImageCache cache, int threads);
  ~ImageWork();  // waits for the kernels that threads are compiling, and drops the others

  // `compile` is run once, on any thread, and has all that it reads. `key`: LoweredKernel::key, behind
  // what all kernels of its backend have in common.
  void add(std::string key, std::function<Image()> compile);
  // Waits for all kernels and returns them; the last call. Calls report(done, total) after each that the
  // caller's thread compiles, and throws what `report` or the first `compile` to fail threw.
  CompiledImages finish(const std::function<void(size_t, size_t)>& report);

 private:
  struct Item {
    std::string key;
    std::function<Image()> compile;
    Image image;
    bool is_new = true;
  };

  void start_worker_if_needed();
  void work();
  Item* next();  // null: there will be none
  void make(Item& item) const;
  void make_from_cache(Item& item, const CacheKey& key) const;
  void stop();

  const ImageCache cache_;
  const size_t most_workers_;
  std::mutex mutex_;  // of all below, but items that a thread has taken are its own
  std::condition_variable changed_;
  std::deque<Item> items_;  // stays where it is while it grows
  size_t taken_ = 0, done_ = 0, idle_ = 0;
  bool has_all_ = false, is_stopped_ = false;
  std::exception_ptr failure_;
  std::vector<std::jthread> workers_;
};

}  // namespace ingot::core
