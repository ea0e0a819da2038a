// SPDX-License-Identifier: Apache-2.0
// Between a caller's tensors on the host and an engine's on a device: staging memory, and what has to be
// copied when a run ends.
#pragma once

#include <vector>

#include "runtime/memory.h"

namespace ingot::core {

// Copies `bytes` bytes to memory of `memory`, or of the host if it is null.
void copy_in(DeviceMemory* memory, std::byte* to, const std::byte* from, size_t bytes);

class Transfers {
 public:
  void begin() { pending_.clear(); }
  // Memory of the device for `bytes` bytes at `host`, which get what is there when the run ends.
  std::byte* stage(size_t slot, std::byte* host, size_t bytes, DeviceMemory& memory);
  bool pending() const { return !pending_.empty(); }
  // When the device is done: copies to the host what was staged since `begin`.
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
