// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/device.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "backends/cuda/images/architecture.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

// CUdevice_attribute
constexpr int kKilohertz = 13, kMultiprocessors = 16, kMemoryKilohertz = 36, kMemoryBits = 37, kMajor = 75,
              kMinor = 76, kMostSharedBytes = 97;

const Driver& require_driver() {
  const char* reason = nullptr;
  if (const Driver* driver = open_driver(&reason)) return *driver;
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

}  // namespace

Device& Device::get() {
  static Device first(require_driver());
  return first;
}

Device::Device(const Driver& driver) : driver_(driver) {
  int count = 0, device = 0;
  check(driver_, driver_.device_count(&count), "cuDeviceGetCount");
  if (count == 0)
    throw DeviceError("INGOT-D402", "there is no GPU that Ingot can use: the driver reports none",
                      "look at CUDA_VISIBLE_DEVICES");
  check(driver_, driver_.device(&device, 0), "cuDeviceGet");
  check(driver_, driver_.retain_context(&context_, device), "cuDevicePrimaryCtxRetain");
  enter();
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

void Device::enter() const {
  Handle current = nullptr;
  check(driver_, driver_.current_context(&current), "cuCtxGetCurrent");
  if (current != context_) check(driver_, driver_.set_context(context_), "cuCtxSetCurrent");
}

std::shared_ptr<std::byte> Device::allocate(size_t bytes) {
  enter();
  Address memory = 0;
  check(driver_, driver_.allocate(&memory, std::max<size_t>(bytes, 1)), "cuMemAlloc");
  return {reinterpret_cast<std::byte*>(memory), [this](std::byte* data) {
            enter();
            driver_.free(address(data));
          }};
}

// cuMemcpy returns when bytes of pageable memory are staged, and queues' streams do not wait for the rest.
void Device::copy(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes == 0) return;
  enter();
  check(driver_, driver_.copy_on(address(to), address(from), bytes, copies_), "cuMemcpyAsync");
  check(driver_, driver_.synchronize(copies_), "cuStreamSynchronize");
}

std::shared_ptr<std::byte> Device::allocate_pinned(size_t bytes) {
  constexpr unsigned kPortableAndMapped = 3;
  enter();
  void* memory = nullptr;
  check(driver_, driver_.allocate_host(&memory, std::max<size_t>(bytes, 1), kPortableAndMapped),
        "cuMemHostAlloc");
  return {static_cast<std::byte*>(memory), [this](std::byte* data) {
            enter();
            driver_.free_host(data);
          }};
}

size_t Device::free_bytes() const {
  enter();
  size_t free = 0, total = 0;
  check(driver_, driver_.memory_info(&free, &total), "cuMemGetInfo");
  return free;
}

}  // namespace ingot::core::cuda
