// SPDX-License-Identifier: Apache-2.0
#include "backends/fake/execute/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core::fake {
namespace {

constexpr size_t kReserved = size_t{1} << 40;
constexpr size_t kCapacity = size_t{1} << 34;  // that is reported, not enforced
constexpr size_t kPage = 4096;
constexpr int kNaN = 0xff;  // every byte of it

std::byte* reserve() {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const start = mmap(nullptr, kReserved, PROT_NONE, kFlags, -1, 0);
  if (start == MAP_FAILED) throw DeviceError("INGOT-D301", "the fake device cannot reserve its addresses");
  return static_cast<std::byte*>(start);
}

}  // namespace

FakeMemory::FakeMemory() : start_(reserve()) {}
FakeMemory::~FakeMemory() { munmap(start_, kReserved); }

std::shared_ptr<std::byte> FakeMemory::allocate(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > kReserved / 2 || next_ + bytes + 2 * kPage > kReserved)
    throw DeviceError("INGOT-D301", "the fake device is out of memory");
  std::byte* const address = start_ + next_;
  next_ += (bytes + 2 * kPage) / kPage * kPage;  // an unused page between any two blocks
  Block block{bytes, std::shared_ptr<std::byte[]>(new std::byte[bytes])};
  std::memset(block.data.get(), kNaN, bytes);
  blocks_.emplace(address, std::move(block));
  return {address, [own = shared_from_this()](const std::byte* data) { own->release(data); }};
}

void FakeMemory::release(const std::byte* address) {
  const std::lock_guard lock(mutex_);
  blocks_.erase(address);
}

bool FakeMemory::is_here(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  return byte >= start_ && byte < start_ + kReserved;
}

std::shared_ptr<std::byte> FakeMemory::at(const void* address, size_t bytes) const {
  if (bytes == 0) return nullptr;
  if (!is_here(address)) {
    if (is_pinned(static_cast<const std::byte*>(address), bytes)) return anywhere(address, bytes);
    throw InternalError("the device was given an address of the host");
  }
  const auto* const byte = static_cast<const std::byte*>(address);
  const std::lock_guard lock(mutex_);
  const auto after = blocks_.upper_bound(byte);
  const auto block = after == blocks_.begin() ? blocks_.end() : std::prev(after);
  const size_t offset = block == blocks_.end() ? 0 : static_cast<size_t>(byte - block->first);
  if (block == blocks_.end() || offset >= block->second.bytes + kPage)
    throw InternalError("the device was given memory that was released");
  if (offset > block->second.bytes || bytes > block->second.bytes - offset)
    throw InternalError(fmt::format("the device was told to use {} bytes at {} of a block of {}", bytes,
                                    offset, block->second.bytes));
  return {block->second.data, block->second.data.get() + offset};
}

std::shared_ptr<std::byte> FakeMemory::anywhere(const void* address, size_t bytes) const {
  if (is_here(address)) return at(address, bytes);
  return {std::shared_ptr<std::byte>(), static_cast<std::byte*>(const_cast<void*>(address))};
}

std::shared_ptr<std::byte> FakeMemory::allocate_pinned(size_t bytes) {
  auto* const block = new std::byte[bytes];
  const std::lock_guard lock(mutex_);
  pinned_.emplace(block, bytes);
  return {block, [own = shared_from_this()](const std::byte* data) {
            const std::lock_guard own_lock(own->mutex_);
            own->pinned_.erase(data);
            delete[] data;
          }};
}

bool FakeMemory::is_pinned(const std::byte* address, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto after = pinned_.upper_bound(address);
  if (after == pinned_.begin()) return false;
  const auto& [start, size] = *std::prev(after);
  const auto offset = static_cast<size_t>(address - start);
  return offset <= size && bytes <= size - offset;
}

size_t FakeMemory::used_bytes() const {
  const std::lock_guard lock(mutex_);
  size_t bytes = 0;
  for (const auto& [address, block] : blocks_) bytes += block.bytes;
  return bytes;
}

size_t FakeMemory::free_bytes() const { return kCapacity - std::min(kCapacity, used_bytes()); }

void FakeMemory::copy(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes > 0) std::memmove(anywhere(to, bytes).get(), anywhere(from, bytes).get(), bytes);
}

}  // namespace ingot::core::fake
