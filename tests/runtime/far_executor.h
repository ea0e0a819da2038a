// SPDX-License-Identifier: Apache-2.0
// A device whose addresses fault if the host uses them, and which does what was enqueued only when it is
// waited for. Its kernels are C++ functions.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/runtime/fixtures.h"

namespace ingot::core::testing {

constexpr uintptr_t kFar = uintptr_t{1} << 47;  // no address of a process has this bit

template <typename Byte>
Byte* near(Byte* address) {
  return reinterpret_cast<Byte*>(reinterpret_cast<uintptr_t>(address) & ~kFar);
}

class FarMemory final : public DeviceMemory {
 public:
  std::shared_ptr<std::byte> allocate(size_t bytes) override {
    const std::shared_ptr<std::byte> own = allocate_memory(bytes);
    return {own, reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(own.get()) | kFar)};
  }
  void copy(std::byte* to, const std::byte* from, size_t bytes) override {
    std::memcpy(near(to), near(from), bytes);
  }
};

class FarQueue final : public Queue {
 public:
  explicit FarQueue(const std::vector<TestKernel>& kernels) : kernels_(kernels) {}
  std::optional<CallFailure> run(const CallSpan& span) override {
    for (const KernelCall& call : span.calls) enqueue(call);
    return std::nullopt;
  }
  std::optional<CallFailure> wait() override {
    for (Entry& entry : std::exchange(entries_, {})) {
      const KernelCall call{entry.launch, entry.buffers, entry.symbols.data(), entry.sizes.data()};
      const int64_t status =
          entry.launch == nullptr ? (copy_on_host(call), 0) : kernels_[entry.launch->image](call);
      if (status != 0) return CallFailure{entry.launch, status};
    }
    return std::nullopt;
  }

 private:
  struct Entry {
    const Launch* launch;
    std::vector<void*> buffers;
    std::vector<int64_t> symbols, sizes;
  };
  void enqueue(const KernelCall& call) {
    Entry& entry =
        entries_.emplace_back(Entry{.launch = call.launch, .buffers = {}, .symbols = {}, .sizes = {}});
    for (void* buffer : call.buffers) entry.buffers.push_back(near(static_cast<std::byte*>(buffer)));
    const size_t sizes = call.launch == nullptr ? 1 : call.launch->sizes.size();
    entry.sizes.assign(call.sizes, call.sizes + sizes);
    if (call.launch != nullptr)
      entry.symbols.assign(call.symbols, call.symbols + call.launch->symbols.size());
  }

  const std::vector<TestKernel>& kernels_;
  std::vector<Entry> entries_;
};

class FarExecutor final : public Executor {
 public:
  explicit FarExecutor(std::vector<TestKernel> kernels) : kernels_(std::move(kernels)) {}
  std::string_view name() const override { return "null"; }
  std::string missing(const Image&) const override { return {}; }
  std::unique_ptr<LoadedImages> load(const EngineData&, const EngineFile*) const override {
    return std::make_unique<LoadedImages>();
  }
  bool is_valid(const Launch&, size_t) const override { return true; }
  std::unique_ptr<Queue> open_queue(const MemoryAllocator*) const override {
    return std::make_unique<FarQueue>(kernels_);
  }
  DeviceMemory* memory() const override { return &memory_; }

 private:
  std::vector<TestKernel> kernels_;
  mutable FarMemory memory_;
};

}  // namespace ingot::core::testing
