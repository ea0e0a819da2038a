// SPDX-License-Identifier: Apache-2.0
#include "runtime/transfers.h"

#include <cstring>

namespace ingot::core {

void copy_in(DeviceMemory* memory, std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes == 0) return;
  if (memory != nullptr)
    memory->copy(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

std::byte* Transfers::stage(size_t slot, std::byte* host, size_t bytes, DeviceMemory& memory) {
  if (blocks_.size() <= slot) blocks_.resize(slot + 1);
  std::byte* device = blocks_[slot].reserve(bytes, &memory);
  pending_.push_back({&memory, device, host, bytes});
  return device;
}

void Transfers::finish() {
  for (const Pending& each : pending_) {
    if (each.bytes > 0) each.memory->copy(each.host, each.device, each.bytes);
  }
  pending_.clear();
}

}  // namespace ingot::core
