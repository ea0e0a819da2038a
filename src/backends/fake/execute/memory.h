// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "backends/executor.h"

namespace ingot::core::fake {

// Memory that the host cannot touch: its addresses lie in a reservation without access, and are never given
// out twice. The bytes are elsewhere.
class FakeMemory final : public DeviceMemory, public std::enable_shared_from_this<FakeMemory> {
 public:
  FakeMemory();  // DeviceError INGOT-D301
  ~FakeMemory() override;

  std::shared_ptr<std::byte> allocate(size_t bytes) override;  // full of NaN
  void copy(std::byte* to, const std::byte* from, size_t bytes) override;
  std::shared_ptr<std::byte> allocate_pinned(size_t bytes) override;
  size_t free_bytes() const override;
  size_t used_bytes() const;

  // The bytes at an address of the device, valid while it is held, also when the memory is released
  // meanwhile. InternalError if there are not as many: the memory was released, or is smaller, or is the
  // host's.
  std::shared_ptr<std::byte> at(const void* address, size_t bytes) const;
  // The same for an address of the device or of the host, whose memory is not checked.
  std::shared_ptr<std::byte> anywhere(const void* address, size_t bytes) const;
  bool is_here(const void* address) const;

 private:
  struct Block {
    size_t bytes;
    std::shared_ptr<std::byte[]> data;
  };
  void release(const std::byte* address);
  bool is_pinned(const std::byte* address, size_t bytes) const;

  std::byte* const start_;
  mutable std::mutex mutex_;                   // of what follows
  size_t next_ = 0;                            // offset of the next allocation
  std::map<const std::byte*, Block> blocks_;   // live ones, by their address
  std::map<const std::byte*, size_t> pinned_;  // bytes of those of the host that kernels can read
};

}  // namespace ingot::core::fake
