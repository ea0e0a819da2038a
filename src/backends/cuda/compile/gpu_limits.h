// SPDX-License-Identifier: Apache-2.0
// Properties of a GPU that decide how kernels are written.
#pragma once

#include <cstdint>
#include <string_view>

namespace ingot::core::cuda {

struct GpuLimits {
  int64_t shared_bytes;  // available to one block
  bool clusters;
  bool warp_groups;  // wgmma, with tensor maps
};
GpuLimits limits_of(std::string_view architecture);

// Multiprocessors of an H200, and how many of them clusters of a given size can fill: the blocks of a cluster
// share a part of the chip.
constexpr double kMultiprocessors = 132;
constexpr double processors_for(int blocks_of_cluster) {
  return blocks_of_cluster == 1   ? kMultiprocessors
         : blocks_of_cluster == 2 ? 128
         : blocks_of_cluster == 4 ? 112
                                  : 96;
}

}  // namespace ingot::core::cuda
