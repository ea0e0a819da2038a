// SPDX-License-Identifier: Apache-2.0
// The contract between both halves of the CUDA backend: how a kernel is launched, and with which arguments.
//
// An image is a cubin with one kernel. Its arguments: one pointer per buffer, one i64 per symbol, a pointer
// to scratch memory, and a pointer to an i32 status, which it sets to a loops::KernelStatus if a value cannot
// be used; then its tensor maps, if any. Groups of threads take work items in turn, so that any number of
// blocks computes the same. A kernel may start while its predecessor runs: it waits for it before it
// touches anything but weights, and states that no earlier step of the program writes.
#pragma once

#include <cstdint>

namespace ingot::core::cuda {

constexpr const char* kEntry = "ingot_kernel";

// Positions in Launch::sizes and Launch::constants.
enum LaunchSize : uint8_t {
  kItems,         // of work, one per group at a time
  kSharedBytes,   // per block, in addition to what the kernel declares itself
  kScratchBytes,  // per group of the grid
  kLaunchSizes
};
enum LaunchConstant : uint8_t {
  kBlock,    // threads per block
  kGroup,    // threads that share a work item: divides kBlock
  kCluster,  // blocks that share a work item, neighbours in the grid: 1, or a block is a group
  kLaunchConstants
};

// A tensor map describes a buffer of 16-bit elements, from which a kernel copies boxes into shared memory
// with one instruction (CUtensorMap: PTX ISA, "Tensor copies"). Boxes are kMapInner elements wide and stored
// with the 128-byte swizzle; elements beyond an extent are zero. A map of windows walks over the pixels
// of a channels-last image instead (im2col). A launch has as many maps as its sizes and constants have room
// for after its own: kMapConstants and kMapSizes each. Dims are innermost first; unused ones have extent 1.
constexpr int64_t kMapInner = 64;
constexpr size_t kMapRank = 5, kMapPlaneRank = 2;
constexpr int64_t kMostMapStep = 8, kMostMapCorner = 127;  // of windows
enum MapSize : uint8_t {
  kMapExtents,                           // kMapRank of them
  kMapStrides = kMapExtents + kMapRank,  // in elements, of all dims but the innermost
  kMapSizes = kMapStrides + kMapRank - 1
};
enum MapConstant : uint8_t {
  kMapBuffer,  // of the kernel's arguments
  kMapDims,    // that count, at most kMapRank; of windows 4
  kMapIsWindows,
  kMapBox,                                // elements along each dim; of windows only [1], the pixels of a box
  kMapSteps = kMapBox + kMapRank,         // of windows, from pixel to pixel along (x, y)
  kMapLower = kMapSteps + kMapPlaneRank,  // of windows: the first pixel, relative to the first of the image,
  kMapUpper = kMapLower + kMapPlaneRank,  // and the last, relative to the last
  kMapConstants = kMapUpper + kMapPlaneRank
};

constexpr int64_t kMostThreads = 1024;                 // per block
constexpr size_t kMostMaps = 8, kMostArguments = 400;  // of a kernel: they fit in its 4 KB of parameters
constexpr int64_t kMostBlocksOfCluster = 8;

}  // namespace ingot::core::cuda
