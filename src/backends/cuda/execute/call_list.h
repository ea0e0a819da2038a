// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/cuda/execute/driver.h"
#include "support/hash.h"

namespace ingot::core::cuda {

// Launches and copies with everything resolved, as one list of words: equal lists do the same work on the
// same addresses, so that one can be played for the other.
class CallList {
 public:
  void clear() { words_.clear(); }
  void add_copy(const void* from, void* to, size_t bytes);
  // Arguments follow by `add_argument`.
  void add_launch(Handle function, uint32_t grid, uint32_t block, uint32_t shared_bytes);
  void add_argument(uint64_t value);

  bool operator==(const CallList&) const = default;
  Checksum checksum() const;
  // Each in turn on `stream`, where a capture may be under way.
  // `overlap`: a kernel behind another may start before that is done, as kernel_abi.h says.
  void enqueue(const Driver& driver, Handle stream, bool overlap);

 private:
  std::vector<uint64_t> words_;
  size_t counter_ = 0;            // of the last launch's arguments, in `words_`
  std::vector<void*> arguments_;  // space for those of one launch
};

}  // namespace ingot::core::cuda
