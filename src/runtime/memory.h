// SPDX-License-Identifier: Apache-2.0
// Memory of runs and weights: 64-byte aligned; large blocks ask for huge pages.
#pragma once

#include <cstddef>
#include <memory>

namespace ingot::core {

// Not initialized. Throws DeviceError INGOT-D301 if the system has no memory left.
std::shared_ptr<std::byte> allocate_memory(size_t bytes);

// A block that only grows, and forgets its content when it does.
class GrowingBlock {
 public:
  std::byte* reserve(size_t bytes) {
    if (bytes > bytes_) grow(bytes);
    return data_.get();
  }
  size_t bytes() const { return bytes_; }

 private:
  void grow(size_t bytes);

  std::shared_ptr<std::byte> data_;
  size_t bytes_ = 0;
};

}  // namespace ingot::core
