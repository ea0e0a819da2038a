// SPDX-License-Identifier: Apache-2.0
#include "backends/fake/execute/execute.h"

#include "backends/fake/execute/images.h"
#include "backends/fake/execute/memory.h"
#include "backends/fake/execute/queue.h"
#include "backends/fake/kernel_abi.h"

namespace ingot::core::fake {

FakeExecutor::FakeExecutor(const Options& options)
    : options_(options), memory_(std::make_shared<FakeMemory>()) {}
FakeExecutor::~FakeExecutor() = default;

std::string_view FakeExecutor::name() const { return kBackend; }

std::string FakeExecutor::missing(const Image& image) const {
  return device_of(image) == kDevice ? "" : std::string(device_of(image));
}

std::unique_ptr<LoadedImages> FakeExecutor::load(const EngineData& data, const EngineFile*) const {
  auto images = std::make_unique<Images>();
  for (const Image& image : data.images)
    images->kernels.push_back(backend_of(image) == kBackend ? load_kernel(image) : nullptr);
  return images;
}

bool FakeExecutor::is_valid(const Launch& launch, size_t) const {
  return launch.sizes.empty() && launch.constants.empty();
}

std::unique_ptr<Queue> FakeExecutor::open_queue(const MemoryAllocator*) const {
  Options options = options_;
  options.seed += queues_++;
  return std::make_unique<FakeQueue>(memory_, options, counts_);
}

DeviceMemory* FakeExecutor::memory() const { return memory_.get(); }

const Executor& executor() {
  static const FakeExecutor instance;
  return instance;
}

}  // namespace ingot::core::fake
