// SPDX-License-Identifier: Apache-2.0
// Tensor maps as the driver encodes them, from the sizes and constants of a launch (kernel_abi.h).
#pragma once

#include <cstdint>
#include <span>

#include "backends/cuda/execute/driver.h"
#include "engine/launch.h"

namespace ingot::core::cuda {

struct alignas(64) EncodedMap {  // CUtensorMap
  uint64_t words[16];
};

// The number of maps of a valid launch.
size_t tensor_maps_of(const Launch& launch);
// Whether the sizes and constants after the launch's own describe maps of the kernel's buffers. (Sizes are
// not evaluated yet.)
bool has_valid_maps(const Launch& launch, size_t buffers);

// `constants` and `sizes` are those of one map, the latter evaluated. All zeros if there is nothing to copy,
// if coordinates would not fit in 32 bits, or if the address is not aligned to 16 bytes: kernels check
// that before they use a map.
EncodedMap encode_map(const Driver& driver, Address address, std::span<const int64_t> constants,
                      std::span<const int64_t> sizes);

}  // namespace ingot::core::cuda
