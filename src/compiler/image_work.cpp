// SPDX-License-Identifier: Apache-2.0
#include "compiler/image_work.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "compiler/image_entry.h"

namespace ingot::core {

ImageWork::ImageWork(ImageCache cache, int threads)
    : cache_(std::move(cache)), most_workers_(static_cast<size_t>(std::max(threads, 1) - 1)) {}

ImageWork::~ImageWork() { stop(); }

void ImageWork::add(std::string key, std::function<Image()> compile) {
  const std::scoped_lock lock(mutex_);
  items_.push_back({.key = std::move(key), .compile = std::move(compile), .image = {}});
  start_worker_if_needed();
  changed_.notify_one();
}

// As many as the system can start: the caller works too, at the end.
void ImageWork::start_worker_if_needed() {
  if (workers_.size() == most_workers_ || items_.size() - taken_ <= idle_) return;
  try {
    workers_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
  }
}

// The caller's thread reports between kernels, so that callbacks come from one thread only.
CompiledImages ImageWork::finish(const std::function<void(size_t, size_t)>& report) {
  {
    const std::scoped_lock lock(mutex_);
    has_all_ = true;
    changed_.notify_all();
  }
  while (Item* item = next()) {
    make(*item);
    std::unique_lock lock(mutex_);
    const size_t done = ++done_;
    lock.unlock();
    report(done, items_.size());
  }
  workers_.clear();
  if (failure_) std::rethrow_exception(failure_);
  CompiledImages all;
  for (Item& item : items_) {
    all.images.push_back(std::move(item.image));
    all.is_new.push_back(item.is_new ? 1 : 0);
  }
  return all;
}

void ImageWork::work() {
  try {
    while (Item* item = next()) {
      make(*item);
      const std::scoped_lock lock(mutex_);
      ++done_;
    }
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    is_stopped_ = true;
    changed_.notify_all();
  }
}

ImageWork::Item* ImageWork::next() {
  std::unique_lock lock(mutex_);
  ++idle_;
  changed_.wait(lock, [&] { return is_stopped_ || has_all_ || taken_ < items_.size(); });
  --idle_;
  return is_stopped_ || taken_ == items_.size() ? nullptr : &items_[taken_++];
}

void ImageWork::make(Item& item) const {
  const CacheKey key = make_key(EntryKind::kKernel, item.key);
  if (cache_.cache == nullptr) {
    item.image = item.compile();
  } else {
    make_from_cache(item, key);
  }
  item.image.key = key.digest;
}

void ImageWork::make_from_cache(Item& item, const CacheKey& key) const {
  const FoundEntry found = cache_.cache->get(key, cache_.use, [&] { return encode_image(item.compile()); });
  if (std::optional<Image> image = decode_image(*found.bytes)) {
    item.image = *std::move(image);
    item.is_new = found.origin == Origin::kMade;
  } else {
    item.image = item.compile();
  }
}

void ImageWork::stop() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopped_ = true;
    changed_.notify_all();
  }
  workers_.clear();
}

}  // namespace ingot::core
