// SPDX-License-Identifier: Apache-2.0
// Library calls in the list of calls of a queue (images/library_call.h).
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "backends/cuda/execute/library_plans.h"
#include "backends/executor.h"

namespace ingot::core::cuda {

// Those of one queue, which keeps what its graphs may refer to. Used by one thread at a time, with the
// device's context current.
class LibraryCalls {
 public:
  explicit LibraryCalls(const Device& device) : device_(device) {}
  LibraryCalls(const LibraryCalls&) = delete;
  LibraryCalls& operator=(const LibraryCalls&) = delete;
  ~LibraryCalls();

  // The plan of a valid launch, which lives until `clear`; null if there is nothing to compute. DeviceError
  // INGOT-D405.
  const LibraryPlans::Planned* prepare(const KernelCall& call);
  PreparedCall::Arguments arguments_of(const KernelCall& call, void* workspace) const;

  bool is_full() const { return kept_.size() >= kMostKept; }
  void clear();

 private:
  static constexpr size_t kMostKept = 4096;  // shapes
  struct Last {
    std::vector<int64_t> sizes;
    int64_t alignment = 0;
    const LibraryPlans::Planned* planned = nullptr;
  };

  const Device& device_;
  Handle convolutions_ = nullptr;                   // opened for the first of them
  std::map<uint64_t, LibraryPlans::Planned> kept_;  // by number
  std::unordered_map<const Launch*, Last> last_;    // of each step: most calls have the sizes of the last one
};

}  // namespace ingot::core::cuda
