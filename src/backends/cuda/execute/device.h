// SPDX-License-Identifier: Apache-2.0
// A GPU of this machine, in its primary context, which all libraries of a process share.
#pragma once

#include <array>
#include <memory>
#include <new>
#include <string>

#include "backends/cuda/execute/driver.h"
#include "backends/executor.h"

namespace ingot::core::cuda {

// While it exists, a context is current in the calling thread; then the one of before is again.
class CurrentContext {
 public:
  CurrentContext(const Driver& driver, Handle context);
  // For what frees something: never throws. Where the driver has ended, or is that of a forked child's
  // parent, no context is current, calls of the driver fail, and there is nothing to free.
  CurrentContext(const Driver& driver, Handle context, std::nothrow_t) noexcept;
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext();

 private:
  const Driver& driver_;
  bool is_pushed_ = false;
};

class Device final : public DeviceMemory {
 public:
  // GPU `index` of those that the driver shows. DeviceError INGOT-D402 where there is no driver, or no such
  // GPU.
  static Device& get(int index);
  static int count();  // 0 without a driver

  const Driver& driver() const { return driver_; }
  int processors() const { return processors_; }                     // multiprocessors
  int shared_bytes() const { return shared_bytes_; }                 // that one block may ask for
  bool overlaps_kernels() const { return overlaps_kernels_; }        // programmatic dependent launch
  const std::string& architecture() const { return architecture_; }  // "sm_90"
  const std::array<char, 16>& unique_number() const { return unique_number_; }
  const std::string& model() const { return model_; }  // "NVIDIA H200"
  int index() const { return index_; }
  Handle context() const { return context_; }
  // Makes its context current in the calling thread, for calls of the driver.
  [[nodiscard]] CurrentContext enter() const { return {driver_, context_}; }
  [[nodiscard]] CurrentContext enter_to_free() const noexcept { return {driver_, context_, std::nothrow}; }

  std::shared_ptr<std::byte> allocate(size_t bytes) override;
  void copy(std::byte* to, const std::byte* from, size_t bytes) override;
  // Kernels can write it.
  std::shared_ptr<std::byte> allocate_pinned(size_t bytes) override;
  size_t free_bytes() const override;
  DeviceRates rates() const { return rates_; }

 private:
  Device(const Driver& driver, int index);

  const Driver& driver_;
  const int index_;
  Handle context_ = nullptr, copies_ = nullptr;  // the stream of `copy`
  int processors_ = 0, shared_bytes_ = 0;
  bool overlaps_kernels_ = false;
  std::string architecture_, model_;
  DeviceRates rates_;
  std::array<char, 16> unique_number_{};
};

inline Address address(const void* pointer) { return reinterpret_cast<Address>(pointer); }

}  // namespace ingot::core::cuda
