// SPDX-License-Identifier: Apache-2.0
// The first GPU of this machine, through the driver, for tests of generated kernels.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/compile/launch_plan.h"
#include "tests/backends/storage.h"

namespace ingot::core::cuda::test {

class Gpu {
 public:
  static std::unique_ptr<Gpu> open();  // null where there is no driver or no GPU
  ~Gpu();

  // "sm_90a", or what INGOT_TEST_ARCHITECTURE says: "compute_90"
  std::string architecture() const;

  class Module;
  std::shared_ptr<const Module> load(const std::vector<std::byte>& code);
  // Runs a kernel on copies of the storages, guards included, and copies them back; returns its status.
  // Throws DeviceError after a fault.
  int32_t run(const Module& module, const std::string& entry, const LaunchPlan& plan,
              const SymbolValues& symbols, std::vector<core::test::Storage>& storages);

 private:
  struct Driver;
  explicit Gpu(std::unique_ptr<Driver> driver);
  std::unique_ptr<Driver> driver_;
};

}  // namespace ingot::core::cuda::test
