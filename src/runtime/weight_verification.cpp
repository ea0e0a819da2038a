// SPDX-License-Identifier: Apache-2.0
#include "runtime/weight_verification.h"

#include <utility>

namespace ingot::core {

WeightVerification::WeightVerification(std::shared_ptr<const EngineFile> file)
    : file_(std::move(file)), blocks_(file_->weight_blocks()), complete_(blocks_ == 0) {
  if (blocks_ > 0) thread_ = std::jthread([this] { work(); });
}

WeightVerification::~WeightVerification() { stop_ = true; }

void WeightVerification::work() {
  while (!stop_) {
    const size_t block = next_.fetch_add(1, std::memory_order_relaxed);
    if (block >= blocks_) return;
    try {
      file_->verify_weights(block, block + 1);
    } catch (...) {
      return fail(std::current_exception());
    }
    if (done_.fetch_add(1) + 1 < blocks_) continue;
    const std::scoped_lock lock(mutex_);
    complete_.store(true, std::memory_order_release);
    finished_.notify_all();
  }
}

void WeightVerification::fail(std::exception_ptr failure) {
  const std::scoped_lock lock(mutex_);
  if (!failure_) failure_ = std::move(failure);
  stop_ = true;
  finished_.notify_all();
}

void WeightVerification::wait() {
  if (complete_.load(std::memory_order_acquire)) [[likely]]
    return;
  work();
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this] { return complete_.load() || failure_ != nullptr; });
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace ingot::core
