// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/device.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include <fmt/core.h>

#include "backends/cuda/execute/capture_mode.h"
#include "backends/cuda/images/architecture.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

// CUdevice_attribute
constexpr int kKilohertz = 13, kMultiprocessors = 16, kMemoryKilohertz = 36, kMemoryBits = 37, kMajor = 75,
              kMinor = 76, kMostSharedBytes = 97;

const Driver& require_driver() {
  const char* reason = nullptr;
  if (const Driver* driver = open_driver(&reason)) {
    require_own_process(*driver);
    return *driver;
  }
  throw DeviceError("INGOT-D402", fmt::format("there is no GPU that Ingot can use: {}", reason),
                    "run it on a machine with an NVIDIA GPU and its driver, or build for the CPU");
}

// Operations of tensor cores, without sparsity, sums in f32: NVIDIA's white papers on each architecture.
// `clocks`: of all multiprocessors, per second.
DeviceRates rates_of(int architecture, double clocks) {
  const double halves = architecture >= 120   ? 1024
                        : architecture >= 100 ? 8192
                        : architecture >= 90  ? 4096
                        : architecture == 80  ? 2048
                                              : 1024;
  const double doubles = architecture == 80 || (architecture >= 90 && architecture < 110) ? 128 : 4;
  return {.half_operations = halves * clocks,
          .float_operations = halves / 2 * clocks,  // TF32
          .double_operations = doubles * clocks};
}

void require_index(const Driver& driver, int index) {
  int count = 0;
  check(driver, driver.device_count(&count), "cuDeviceGetCount");
  if (count == 0)
    throw DeviceError("INGOT-D402", "there is no GPU that Ingot can use: the driver reports none",
                      "look at CUDA_VISIBLE_DEVICES");
  if (index < 0 || index >= count)
    throw DeviceError(
        "INGOT-D402",
        count == 1 ? fmt::format("there is no GPU {}: the driver reports one, which is GPU 0", index)
                   : fmt::format("there is no GPU {}: the driver reports GPUs 0 to {}", index, count - 1),
        "choose one of these, or look at CUDA_VISIBLE_DEVICES");
}

}  // namespace

CurrentContext::CurrentContext(const Driver& driver, Handle context) : driver_(driver) {
  require_own_process(driver);
  Handle current = nullptr;
  check(driver_, driver_.current_context(&current), "cuCtxGetCurrent");
  if (current == context) return;
  check(driver_, driver_.push_context(context), "cuCtxPushCurrent");
  is_pushed_ = true;
}

CurrentContext::CurrentContext(const Driver& driver, Handle context, std::nothrow_t) noexcept
    : driver_(driver) {
  Handle current = nullptr;
  if (driver_.current_context(&current) == 0 && current != context)
    is_pushed_ = driver_.push_context(context) == 0;
}

CurrentContext::~CurrentContext() {
  Handle popped = nullptr;
  if (is_pushed_) driver_.pop_context(&popped);
}

int Device::count() {
  const char* reason = nullptr;
  int count = 0;
  const Driver* driver = open_driver(&reason);
  return driver != nullptr && driver->device_count(&count) == 0 ? count : 0;
}

// Opened when they are first used, and never closed: they outlive everything that might free memory.
Device& Device::get(int index) {
  struct Opened {
    std::mutex mutex;
    std::map<int, std::unique_ptr<Device>> devices;
  };
  static Opened& opened = *new Opened;
  const Driver& driver = require_driver();
  const std::scoped_lock lock(opened.mutex);
  std::unique_ptr<Device>& device = opened.devices[index];
  if (device == nullptr) {
    require_index(driver, index);
    device.reset(new Device(driver, index));
  }
  return *device;
}

Device::Device(const Driver& driver, int index) : driver_(driver), index_(index) {
  int device = 0;
  check(driver_, driver_.device(&device, index), "cuDeviceGet");
  check(driver_, driver_.retain_context(&context_, device), "cuDevicePrimaryCtxRetain");
  const CurrentContext current{driver_, context_};
  constexpr unsigned kNonBlocking = 1;
  check(driver_, driver_.create_stream(&copies_, kNonBlocking), "cuStreamCreate");
  const auto attribute = [&](int id) {
    int value = 0;
    check(driver_, driver_.attribute(&value, id, device), "cuDeviceGetAttribute");
    return value;
  };
  processors_ = attribute(kMultiprocessors);
  shared_bytes_ = attribute(kMostSharedBytes);
  overlaps_kernels_ = attribute(kMajor) * 10 + attribute(kMinor) >= kFirstToOverlap;
  check(driver_, driver_.unique_number(unique_number_.data(), device), "cuDeviceGetUuid");
  std::array<char, 256> name{};
  check(driver_, driver_.device_name(name.data(), static_cast<int>(name.size()) - 1, device),
        "cuDeviceGetName");
  model_ = name.data();
  constexpr double kHertz = 1e3, kPerClock = 2, kBitsPerByte = 8;  // memory moves data twice per clock
  rates_ =
      rates_of(attribute(kMajor) * 10 + attribute(kMinor), processors_ * (attribute(kKilohertz) * kHertz));
  rates_.bytes = attribute(kMemoryKilohertz) * kHertz * kPerClock * attribute(kMemoryBits) / kBitsPerByte;
  architecture_ = fmt::format("sm_{}{}", attribute(kMajor), attribute(kMinor));
}

std::shared_ptr<std::byte> Device::allocate(size_t bytes) {
  const CurrentContext current = enter();
  const RelaxedCapture relaxed(driver_);
  Address memory = 0;
  check(driver_, driver_.allocate(&memory, std::max<size_t>(bytes, 1)), "cuMemAlloc");
  return {reinterpret_cast<std::byte*>(memory), [this](std::byte* data) {
            const CurrentContext own = enter_to_free();
            const RelaxedCapture ending(driver_);
            driver_.free(address(data));
          }};
}

// cuMemcpy returns when bytes of pageable memory are staged, and queues' streams do not wait for the rest.
void Device::copy(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes == 0) return;
  const CurrentContext current = enter();
  const RelaxedCapture relaxed(driver_);
  check(driver_, driver_.copy_on(address(to), address(from), bytes, copies_), "cuMemcpyAsync");
  check(driver_, driver_.synchronize(copies_), "cuStreamSynchronize");
}

std::shared_ptr<std::byte> Device::allocate_pinned(size_t bytes) {
  constexpr unsigned kPortableAndMapped = 3;
  const CurrentContext current = enter();
  const RelaxedCapture relaxed(driver_);
  void* memory = nullptr;
  check(driver_, driver_.allocate_host(&memory, std::max<size_t>(bytes, 1), kPortableAndMapped),
        "cuMemHostAlloc");
  return {static_cast<std::byte*>(memory), [this](std::byte* data) {
            const CurrentContext own = enter_to_free();
            const RelaxedCapture ending(driver_);
            driver_.free_host(data);
          }};
}

size_t Device::free_bytes() const {
  const CurrentContext current = enter();
  size_t free = 0, total = 0;
  check(driver_, driver_.memory_info(&free, &total), "cuMemGetInfo");
  return free;
}

}  // namespace ingot::core::cuda
