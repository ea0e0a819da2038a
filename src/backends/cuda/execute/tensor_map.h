// SPDX-License-Identifier: Apache-2.0
// Tensor maps as the driver encodes them, from what a launch says of them (kernel_abi.h).
#pragma once

#include <cstdint>
#include <span>

#include "backends/cuda/execute/driver.h"
#include "engine/launch.h"

namespace ingot::core::cuda {

struct alignas(64) EncodedMap {  // CUtensorMap
  uint64_t words[16];
};

// How many maps a valid launch hands over.
size_t tensor_maps_of(const Launch& launch);
// Whether the sizes and constants behind the launch's own describe maps of the kernel's buffers. (Sizes are
// not evaluated yet.)
bool has_valid_maps(const Launch& launch, size_t buffers);

// `constants` and `sizes` are one map's, the latter evaluated. All zeros where there is nothing to copy,
// where coordinates would not fit 32 bits, or where the address is not aligned to 16 bytes: kernels look
// before they use a map.
EncodedMap encode_map(const Driver& driver, Address address, std::span<const int64_t> constants,
                      std::span<const int64_t> sizes);

}  // namespace ingot::core::cuda
