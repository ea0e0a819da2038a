// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/images.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "backends/cuda/kernel_abi.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

// "sm_90a" -> 90; 0 if it is not an architecture.
int number_of(std::string_view architecture) {
  int number = 0;
  constexpr std::string_view kPrefix = "sm_";
  if (!architecture.starts_with(kPrefix)) return 0;
  const char* begin = architecture.data() + kPrefix.size();
  std::from_chars(begin, architecture.data() + architecture.size(), number);
  return number;
}

Handle load_function(const Image& image, Images& images) {
  constexpr int kMostDynamicShared = 8, kStaticShared = 1;
  const Driver& driver = images.device.driver();
  Handle module = nullptr, function = nullptr;
  check(driver, driver.load_module(&module, image.code.data()), "cuModuleLoadData");
  images.modules.push_back(module);
  check(driver, driver.function(&function, module, kEntry), "cuModuleGetFunction");
  int declared = 0;
  check(driver, driver.function_attribute(&declared, kStaticShared, function), "cuFuncGetAttribute");
  check(driver,
        driver.set_function_attribute(function, kMostDynamicShared, images.device.shared_bytes() - declared),
        "cuFuncSetAttribute");
  return function;
}

}  // namespace

Images::~Images() {
  device.enter();
  for (const Handle module : modules) device.driver().unload_module(module);
}

// Code for sm_80 runs on all of 8.x from it on; code with an "a" on that architecture alone.
std::string missing(const Image& image, const Device& device) {
  const std::string_view needs = device_of(image);
  const int needed = number_of(needs), own = number_of(device.architecture());
  const bool exact = needs.ends_with('a');
  const bool fits = needed > 0 && (exact ? needed == own : needed / 10 == own / 10 && needed <= own);
  return fits ? "" : std::string(needs);
}

std::unique_ptr<Images> load_images(const EngineData& data, Device& device) {
  device.enter();
  auto images = std::make_unique<Images>(device);
  for (const Image& image : data.images) {
    if (!is_ours(image)) {
      images->functions.push_back(nullptr);
      continue;
    }
    if (const std::string needs = missing(image, device); !needs.empty())
      throw UserError(
          "INGOT-U220",
          fmt::format("the engine was built for GPUs with {}; this one has {}", needs, device.architecture()),
          "build the engine for this GPU: device=cuda:" + device.architecture());
    images->functions.push_back(load_function(image, *images));
  }
  return images;
}

}  // namespace ingot::core::cuda
