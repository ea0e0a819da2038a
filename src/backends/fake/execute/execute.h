// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "backends/executor.h"
#include "backends/fake/execute/options.h"

namespace ingot::core::fake {

class FakeMemory;

// A device of its own, with its own memory: nothing of it is shared between executors.
class FakeExecutor final : public Executor {
 public:
  explicit FakeExecutor(const Options& options = {});
  ~FakeExecutor() override;

  std::string_view name() const override;
  std::string processor() const override { return "a fake device"; }
  std::string missing(const Image& image) const override;
  // UserError INGOT-U110 if an image is not the text of a kernel.
  std::unique_ptr<LoadedImages> load(const EngineData& data, const EngineFile* file) const override;
  bool is_valid(const Launch& launch, size_t buffers) const override;
  std::unique_ptr<Queue> open_queue(const MemoryAllocator* allocator = nullptr) const override;
  DeviceMemory* memory() const override;

  const Counts& counts() const { return counts_; }

 private:
  Options options_;
  std::shared_ptr<FakeMemory> memory_;
  mutable Counts counts_;
  mutable std::atomic<uint64_t> queues_{0};
};

// The one of the process.
const Executor& executor();

}  // namespace ingot::core::fake
