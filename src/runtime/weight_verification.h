// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "engine/engine_file.h"

namespace ingot::core {

// Checks the weights of a file in the background. Whoever waits helps; a forked child has no background
// thread, so whoever waits there checks the blocks that were not checked before the fork.
class WeightVerification {
 public:
  explicit WeightVerification(std::shared_ptr<const EngineFile> file);
  ~WeightVerification();
  WeightVerification(const WeightVerification&) = delete;
  WeightVerification& operator=(const WeightVerification&) = delete;

  // Returns when all blocks are correct; throws the first error, on every call.
  void wait();

 private:
  struct Attempt;
  Attempt& attempt_of_this_process();
  void work(Attempt& attempt);

  const std::shared_ptr<const EngineFile> file_;
  std::vector<std::atomic<bool>> checked_;  // one per block
  std::atomic<Attempt*> attempt_;
};

}  // namespace ingot::core
