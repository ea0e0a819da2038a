// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/execute.h"

#include "backends/cuda/execute/queue.h"
#include "backends/cuda/execute/ranges.h"
#include "backends/cuda/execute/tensor_map.h"
#include "backends/cuda/kernel_abi.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

class CudaExecutor final : public Executor {
 public:
  std::string_view name() const override { return "cuda"; }

  std::string processor() const override {
    try {
      return Device::get().model();
    } catch (const DeviceError&) {
      return {};
    }
  }

  DeviceRates rates() const override {
    try {
      return Device::get().rates();
    } catch (const DeviceError&) {
      return {};
    }
  }

  void begin_range(const char* name) const override { push_range(name); }
  void end_range() const override { pop_range(); }

  std::string missing(const Image& image) const override {
    try {
      return cuda::missing(image, Device::get());
    } catch (const DeviceError& error) {
      return error.details().message;
    }
  }

  std::unique_ptr<LoadedImages> load(const EngineData& data, const EngineFile*) const override {
    return load_images(data, Device::get());
  }

  bool is_valid(const Launch& launch, size_t buffers) const override {
    if (launch.sizes.size() < kLaunchSizes || launch.constants.size() < kLaunchConstants) return false;
    if (buffers + launch.symbols.size() > kMostArguments || !has_valid_maps(launch, buffers)) return false;
    const int64_t block = launch.constants[kBlock], group = launch.constants[kGroup],
                  cluster = launch.constants[kCluster];
    const bool is_cluster =
        cluster == 1 || (cluster > 1 && cluster <= kMostBlocksOfCluster && group == block);
    return block >= 1 && block <= kMostThreads && group >= 1 && block % group == 0 && is_cluster;
  }

  std::unique_ptr<Queue> open_queue(const MemoryAllocator*) const override {
    return std::make_unique<CudaQueue>(Device::get());
  }

  DeviceMemory* memory() const override { return &Device::get(); }
};

constinit const CudaExecutor kExecutor;

}  // namespace

const Executor& executor() { return kExecutor; }

}  // namespace ingot::core::cuda
