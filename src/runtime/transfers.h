// SPDX-License-Identifier: Apache-2.0
// Moves data between a caller's host tensors and an engine's device: staging memory, and the copies at the
// end of a run.
#pragma once

#include <vector>

#include "runtime/memory.h"

namespace ingot::core {

// Copies `bytes` bytes to memory of `memory`, or of the host if it is null.
void copy_in(DeviceMemory* memory, std::byte* to, const std::byte* from, size_t bytes);

class Transfers {
 public:
  void begin() { pending_.clear(); }
  // Device memory for `bytes` bytes at `host`, to which its content is copied when the run ends.
  std::byte* stage(size_t slot, std::byte* host, size_t bytes, DeviceMemory& memory);
  bool pending() const { return !pending_.empty(); }
  // Once the device is done: copies everything staged since `begin` to the host.
  void finish();

 private:
  struct Pending {
    DeviceMemory* memory;
    std::byte* device;
    std::byte* host;
    size_t bytes;
  };
  std::vector<GrowingBlock> blocks_;
  std::vector<Pending> pending_;
};

}  // namespace ingot::core
