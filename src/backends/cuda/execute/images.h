// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backends/cuda/execute/device.h"

namespace ingot::core::cuda {

// The images of an engine as functions of a device, one each; null for those of other backends.
struct Images final : LoadedImages {
  explicit Images(Device& on) : device(on) {}
  ~Images() override;

  Device& device;
  bool may_overlap = true;  // all kernels wait for their predecessors (kernel_abi.h)
  std::vector<Handle> modules, functions;
};

inline bool is_ours(const Image& image) { return backend_of(image) == "cuda"; }

// What `device` lacks to run an image, such as "sm_90a"; "" if it can run it, if need be by the driver's
// compiler.
std::string missing(const Image& image, const Device& device);

// UserError INGOT-U220 if an image is for other GPUs.
std::unique_ptr<Images> load_images(const EngineData& data, Device& device);

}  // namespace ingot::core::cuda
