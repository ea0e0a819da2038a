// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/core.h>

#include "support/error.h"
#include "support/file.h"
#include "support/system_memory.h"
#include "support/text.h"

namespace ingot::core {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

std::shared_ptr<std::byte> allocate_by(const MemoryAllocator& allocator, size_t bytes) {
  const size_t taken = std::max<size_t>(bytes, 1);
  void* memory = allocator.allocate(allocator.user, taken, kAlignment);
  if (memory == nullptr)
    throw DeviceError("INGOT-D303",
                      fmt::format("the context's allocator failed to allocate {}", format_bytes(bytes)));
  const auto release = [allocator, taken](std::byte* data) {
    allocator.release(allocator.user, data, taken);
  };
  std::shared_ptr<std::byte> owned(static_cast<std::byte*>(memory), release);
  if (reinterpret_cast<uintptr_t>(memory) % kAlignment != 0)
    throw DeviceError(
        "INGOT-D303",
        fmt::format("the context's allocator returned memory that is not aligned to {} bytes", kAlignment));
  return owned;
}

}  // namespace

std::shared_ptr<std::byte> allocate_memory(size_t bytes, const MemoryAllocator* allocator) {
  if (allocator != nullptr) return allocate_by(*allocator, bytes);
  const bool large = bytes >= kHugePage;
  const size_t alignment = large ? kHugePage : kAlignment;
  const bool absurd = bytes > SIZE_MAX / 2;
  const size_t rounded = absurd ? 0 : round_up(bytes == 0 ? 1 : bytes, alignment);
  void* memory = absurd ? nullptr : allocate_aligned(rounded, alignment);
  if (memory == nullptr) {
    throw DeviceError("INGOT-D301",
                      fmt::format("out of memory: the system cannot allocate {}", format_bytes(bytes)),
                      "use smaller shapes or free memory");
  }
  if (large) prefer_huge_pages(memory, rounded);  // the last one too
  return {static_cast<std::byte*>(memory), [](std::byte* data) { release_aligned(data); }};
}

FileCopy read_copy(const std::filesystem::path& path) {
  std::shared_ptr<std::byte> memory;
  const size_t size = read_file(path, [&](size_t bytes) {
    memory = allocate_memory(bytes);
    return memory.get();
  });
  return {std::move(memory), size};
}

void GrowingBlock::grow(size_t bytes, DeviceMemory* memory) {
  if (keeps_outgrown_) outgrown_.push_back(data_);
  data_.reset();
  bytes_ = 0;
  data_ = memory != nullptr ? memory->allocate(bytes) : allocate_memory(bytes, allocator_);
  bytes_ = bytes;
}

}  // namespace ingot::core
