// SPDX-License-Identifier: Apache-2.0
#include "runtime/weight_verification.h"

#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include "support/fork.h"
#include "support/wait_word.h"

namespace ingot::core {
namespace {

constexpr uint32_t kUnderWay = 0;
constexpr uint32_t kComplete = 1;
constexpr uint32_t kFailed = 2;

}  // namespace

// Shared by the threads of one process. kComplete and kFailed are valid in forked children too.
struct WeightVerification::Attempt {
  const uint32_t process = fork_count();
  std::atomic<uint32_t> state{kUnderWay};
  std::atomic<size_t> next{0}, done{0};  // blocks
  std::atomic<bool> stop{false};         // also claims `failure`
  std::exception_ptr failure;            // written before the state is kFailed
  std::thread background;
  std::unique_ptr<Attempt>
      inherited;  // state of the parent process before a fork; its thread does not exist here

  Attempt() = default;
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt() {
    stop = true;
    if (process != fork_count()) std::construct_at(&background);  // discarded: there is no thread to join
    if (background.joinable()) background.join();
  }

  void end(uint32_t how) {
    state.store(how, std::memory_order_release);
    wake_all(state);
  }
};

WeightVerification::WeightVerification(std::shared_ptr<const EngineFile> file)
    : file_(std::move(file)), checked_(file_->weight_blocks()) {
  auto attempt = std::make_unique<Attempt>();
  if (checked_.empty()) {
    attempt->end(kComplete);
  } else {
    try {
      attempt->background = std::thread([this, own = attempt.get()] { work(*own); });
    } catch (const std::system_error&) {  // no thread available: whoever waits checks all blocks
    }
  }
  attempt_ = attempt.release();
}

WeightVerification::~WeightVerification() { delete attempt_.load(); }

// No lock: the thread that forked may have held it. Inherited attempts are kept, as other threads of this
// process may be reading them.
WeightVerification::Attempt& WeightVerification::attempt_of_this_process() {
  Attempt* attempt = attempt_.load(std::memory_order_acquire);
  while (attempt->process != fork_count() && attempt->state.load() == kUnderWay) [[unlikely]] {
    auto own = std::make_unique<Attempt>();
    own->inherited.reset(attempt);
    if (attempt_.compare_exchange_strong(attempt, own.get(), std::memory_order_acq_rel))
      return *own.release();
    own->inherited.release();
  }
  return *attempt;
}

void WeightVerification::work(Attempt& attempt) {
  while (!attempt.stop) {
    const size_t block = attempt.next.fetch_add(1, std::memory_order_relaxed);
    if (block >= checked_.size()) return;
    try {
      if (!checked_[block].load(std::memory_order_acquire)) file_->verify_weights(block, block + 1);
    } catch (...) {
      if (attempt.stop.exchange(true)) return;
      attempt.failure = std::current_exception();
      return attempt.end(kFailed);
    }
    checked_[block].store(true, std::memory_order_release);
    if (attempt.done.fetch_add(1) + 1 == checked_.size()) attempt.end(kComplete);
  }
}

void WeightVerification::wait() {
  const Attempt* last = attempt_.load(std::memory_order_acquire);
  if (last->state.load(std::memory_order_acquire) == kComplete) [[likely]]
    return;
  Attempt& attempt = attempt_of_this_process();
  work(attempt);
  while (attempt.state.load(std::memory_order_acquire) == kUnderWay) sleep_while(attempt.state, kUnderWay);
  if (attempt.state.load(std::memory_order_acquire) == kFailed) std::rethrow_exception(attempt.failure);
}

}  // namespace ingot::core
