// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backends/cuda/execute/device.h"
#include "backends/cuda/execute/prepared_call.h"
#include "backends/cuda/images/library_call.h"

namespace ingot::core::cuda {

// The library calls of one GPU by their sizes, which all of its queues share: it may take half a second to
// plan one.
class LibraryPlans {
 public:
  struct Planned {
    uint64_t number;  // never used twice: lists of calls compare it
    std::shared_ptr<const PreparedCall> call;
  };

  // Never freed: libraries cannot be closed when the driver may be gone.
  static LibraryPlans& of(const Device& device);

  // The plan of a valid launch with its sizes, for addresses with this alignment. DeviceError INGOT-D405.
  // With the device's context current.
  Planned plan(const Launch& launch, std::span<const int64_t> sizes, int64_t alignment);

  // A handle of cuDNN, for one queue alone: it crashes where streams that are captured and others take turns
  // with one. DeviceError INGOT-D405.
  Handle take_convolutions();
  void return_convolutions(Handle handle);

 private:
  explicit LibraryPlans(const Device& device) : device_(device) {}
  template <typename Calls>
  LibraryHandle& open(const Library& record, const Calls* library, const char* reason, LibraryHandle& own);
  std::shared_ptr<const PreparedCall> make(const Launch& launch, std::span<const int64_t> sizes,
                                           int64_t alignment);
  void forget_unused();

  const Device& device_;
  std::mutex mutex_;
  LibraryHandle products_, convolutions_;  // of cuDNN for planning alone
  std::vector<Handle> unused_;             // of cuDNN
  uint64_t next_ = 0;
  std::map<std::vector<int64_t>, Planned> planned_;
};

}  // namespace ingot::core::cuda
