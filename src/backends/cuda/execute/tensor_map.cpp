// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/tensor_map.h"

#include <algorithm>

#include "backends/cuda/kernel_abi.h"

namespace ingot::core::cuda {
namespace {

// Constants of cuda.h.
constexpr int kUnsigned16 = 1, kNotInterleaved = 0, kSwizzle128 = 3, kPromote256 = 3, kFillZeros = 0;
constexpr int64_t kAlignment = 16, kElement = 2;
constexpr int64_t kMostBox = 256, kMostPlaces = 1024;
constexpr int64_t kImageDims = 4;

bool is_between(int64_t value, int64_t least, int64_t most) { return value >= least && value <= most; }

bool is_valid_map(std::span<const int64_t> map, size_t buffers) {
  const int64_t dims = map[kMapDims];
  const auto corner = [](int64_t value) { return is_between(value, -kMostMapCorner, kMostMapCorner); };
  if (!is_between(map[kMapBuffer], 0, static_cast<int64_t>(buffers) - 1)) return false;
  if (map[kMapBox] != kMapInner || !is_between(map[kMapIsWindows], 0, 1)) return false;
  if (map[kMapIsWindows] != 0)
    return dims == kImageDims && is_between(map[kMapBox + 1], 1, kMostPlaces) &&
           std::ranges::all_of(map.subspan(kMapSteps, kMapPlaneRank),
                               [](int64_t step) { return is_between(step, 1, kMostMapStep); }) &&
           std::ranges::all_of(map.subspan(kMapLower, 2 * kMapPlaneRank), corner);
  return is_between(dims, 2, kMapRank) &&
         std::ranges::all_of(map.subspan(kMapBox, kMapRank),
                             [](int64_t extent) { return is_between(extent, 1, kMostBox); });
}

}  // namespace

size_t tensor_maps_of(const Launch& launch) {
  return (launch.constants.size() - kLaunchConstants) / kMapConstants;
}

bool has_valid_maps(const Launch& launch, size_t buffers) {
  const size_t maps = tensor_maps_of(launch);
  if (maps > kMostMaps) return false;
  if (launch.constants.size() != kLaunchConstants + maps * kMapConstants) return false;
  if (launch.sizes.size() != kLaunchSizes + maps * kMapSizes) return false;
  for (size_t i = 0; i < maps; ++i) {
    const std::span all(launch.constants);
    if (!is_valid_map(all.subspan(kLaunchConstants + i * kMapConstants, kMapConstants), buffers))
      return false;
  }
  return true;
}

EncodedMap encode_map(const Driver& driver, Address address, std::span<const int64_t> constants,
                      std::span<const int64_t> sizes) {
  EncodedMap encoded{};
  const auto dims = static_cast<size_t>(constants[kMapDims]);
  uint64_t extents[kMapRank], strides[kMapRank - 1];
  uint32_t box[kMapRank], steps[kMapRank] = {1, 1, 1, 1, 1};
  for (size_t i = 0; i < dims; ++i) {
    if (!is_between(sizes[kMapExtents + i], 1, INT32_MAX)) return encoded;
    extents[i] = static_cast<uint64_t>(sizes[kMapExtents + i]);
    box[i] = static_cast<uint32_t>(constants[kMapBox + i]);
  }
  for (size_t i = 0; i + 1 < dims; ++i) strides[i] = static_cast<uint64_t>(sizes[kMapStrides + i]) * kElement;
  if (address % kAlignment != 0) return encoded;
  void* const memory = reinterpret_cast<void*>(address);
  const auto rank = static_cast<uint32_t>(dims);
  if (constants[kMapIsWindows] == 0) {
    check(driver,
          driver.encode_tiled(&encoded, kUnsigned16, rank, memory, extents, strides, box, steps,
                              kNotInterleaved, kSwizzle128, kPromote256, kFillZeros),
          "cuTensorMapEncodeTiled");
    return encoded;
  }
  int lower[kMapPlaneRank], upper[kMapPlaneRank];
  for (size_t i = 0; i < kMapPlaneRank; ++i) {
    lower[i] = static_cast<int>(constants[kMapLower + i]);
    upper[i] = static_cast<int>(constants[kMapUpper + i]);
    steps[i + 1] = static_cast<uint32_t>(constants[kMapSteps + i]);
  }
  check(driver,
        driver.encode_windows(&encoded, kUnsigned16, rank, memory, extents, strides, lower, upper, box[0],
                              box[1], steps, kNotInterleaved, kSwizzle128, kPromote256, kFillZeros),
        "cuTensorMapEncodeIm2col");
  return encoded;
}

}  // namespace ingot::core::cuda
