// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/engine_file.h"

namespace ingot::core {

// Checks the weights of a file in the background. Whoever waits helps.
class WeightVerification {
 public:
  explicit WeightVerification(std::shared_ptr<const EngineFile> file);
  ~WeightVerification();

  // Returns when all blocks are right; throws the first error, at every call.
  void wait();

 private:
  void work();
  void fail(std::exception_ptr failure);

  std::shared_ptr<const EngineFile> file_;
  const size_t blocks_;
  std::atomic<size_t> next_{0};
  std::atomic<size_t> done_{0};
  std::atomic<bool> complete_{false};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable finished_;
  std::exception_ptr failure_;
  std::jthread thread_;  // last: it uses all above
};

}  // namespace ingot::core
