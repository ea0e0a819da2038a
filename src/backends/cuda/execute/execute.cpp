// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/execute.h"

#include <array>
#include <utility>

#include "backends/cuda/execute/library_call_rules.h"
#include "backends/cuda/execute/queue.h"
#include "backends/cuda/execute/ranges.h"
#include "backends/cuda/execute/tensor_map.h"
#include "backends/cuda/images/library_call.h"
#include "backends/cuda/kernel_abi.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

constexpr int kMostDevices = 64;

class CudaExecutor final : public Executor {
 public:
  constexpr explicit CudaExecutor(int index) : index_(index) {}

  std::string_view name() const override { return "cuda"; }

  std::string processor() const override {
    try {
      return device().model();
    } catch (const DeviceError&) {
      return {};
    }
  }

  DeviceRates rates() const override {
    try {
      return device().rates();
    } catch (const DeviceError&) {
      return {};
    }
  }

  bool is_present() const override { return index_ < Device::count(); }
  int device_count() const override { return Device::count(); }

  void begin_range(const char* name) const override { push_range(name); }
  void end_range() const override { pop_range(); }

  std::string missing(const Image& image) const override {
    try {
      return cuda::missing(image, device());
    } catch (const DeviceError& error) {
      return error.details().message;
    }
  }

  std::unique_ptr<LoadedImages> load(const EngineData& data, const EngineFile*) const override {
    return load_images(data, device());
  }

  bool is_valid(const Launch& launch, size_t buffers) const override {
    if (calls_library(launch)) return is_valid_library_call(launch, buffers);
    if (launch.sizes.size() < kLaunchSizes || launch.constants.size() < kLaunchConstants) return false;
    if (buffers + launch.symbols.size() > kMostArguments || !has_valid_maps(launch, buffers)) return false;
    const int64_t block = launch.constants[kBlock], group = launch.constants[kGroup],
                  cluster = launch.constants[kCluster];
    const bool is_cluster =
        cluster == 1 || (cluster > 1 && cluster <= kMostBlocksOfCluster && group == block);
    return block >= 1 && block <= kMostThreads && group >= 1 && block % group == 0 && is_cluster;
  }

  bool fits(const Launch& launch, const Image& image,
            std::span<const TensorType* const> arguments) const override {
    if (called_library(launch) != called_library(image)) return false;
    return !calls_library(launch) || fits_library_call(launch, arguments);
  }

  std::unique_ptr<Queue> open_queue(const MemoryAllocator*) const override {
    return std::make_unique<CudaQueue>(device());
  }

  DeviceMemory* memory() const override { return &device(); }
  const Executor& on_device(int index) const override;

 private:
  Device& device() const { return Device::get(index_); }

  int index_;
};

template <size_t... indices>
constexpr std::array<CudaExecutor, sizeof...(indices)> make_executors(std::index_sequence<indices...>) {
  return {CudaExecutor(static_cast<int>(indices))...};
}
constinit const auto kExecutors = make_executors(std::make_index_sequence<kMostDevices>());

const Executor& CudaExecutor::on_device(int index) const {
  if (index < 0 || index >= kMostDevices) Device::get(index);  // says which there are
  return kExecutors[static_cast<size_t>(index)];
}

}  // namespace

const Executor& executor() { return kExecutors[0]; }

}  // namespace ingot::core::cuda
