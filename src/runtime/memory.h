// SPDX-License-Identifier: Apache-2.0
// Memory of runs and weights: 64-byte aligned; large blocks ask for huge pages.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <vector>

#include "backends/executor.h"
#include "support/hash.h"

namespace ingot::core {

// The source of a context's memory, if not the system.
struct MemoryAllocator {
  void* (*allocate)(void* user, size_t bytes, size_t alignment);
  void (*release)(void* user, void* memory, size_t bytes);
  void* user;
};

// Uninitialized. Throws DeviceError INGOT-D301 if the system is out of memory, INGOT-D303 if `allocator`
// (null: the system) fails or returns unaligned memory.
std::shared_ptr<std::byte> allocate_memory(size_t bytes, const MemoryAllocator* allocator = nullptr);

// A file's content in separate memory: later changes of the file have no effect.
struct FileCopy {
  std::shared_ptr<const std::byte> memory;
  size_t size = 0;

  Bytes bytes() const { return {memory.get(), size}; }
};
FileCopy read_copy(const std::filesystem::path& path);  // errors are those of `read_file`

// A block that only grows, and loses its content when it does.
class GrowingBlock {
 public:
  // The allocator must outlive the block.
  explicit GrowingBlock(const MemoryAllocator* allocator = nullptr) : allocator_(allocator) {}

  // `memory`: of a device, the same one in every call; null: of the host.
  std::byte* reserve(size_t bytes, DeviceMemory* memory = nullptr) {
    if (bytes > bytes_) grow(bytes, memory);
    return data_.get();
  }
  size_t bytes() const { return bytes_; }
  // From now on nothing that the block has or had is freed before the block is.
  void keep_outgrown() { keeps_outgrown_ = true; }

 private:
  void grow(size_t bytes, DeviceMemory* memory);

  const MemoryAllocator* allocator_;
  std::shared_ptr<std::byte> data_;
  size_t bytes_ = 0;
  bool keeps_outgrown_ = false;
  std::vector<std::shared_ptr<std::byte>> outgrown_;
};

}  // namespace ingot::core
