// SPDX-License-Identifier: Apache-2.0
// What both halves of the CUDA backend agree on: how a kernel is launched, and what it gets.
//
// An image is a cubin with one kernel. Its arguments: one pointer a buffer, one i64 a symbol, a pointer to
// scratch memory, and a pointer to an i32 status, which it sets to a loops::KernelStatus if a value cannot be
// used. Groups of threads take work items in turn, so that any number of blocks computes the same. A kernel
// may start while the one before it runs: it waits for it before it touches anything but weights.
#pragma once

#include <cstdint>

namespace ingot::core::cuda {

constexpr const char* kEntry = "ingot_kernel";

// Positions in Launch::sizes and Launch::constants.
enum LaunchSize : uint8_t {
  kItems,         // of work, one per group at a time
  kSharedBytes,   // a block, beside what the kernel declares itself
  kScratchBytes,  // a group of the grid
  kLaunchSizes
};
enum LaunchConstant : uint8_t {
  kBlock,    // threads a block
  kGroup,    // threads that share a work item: divides kBlock
  kCluster,  // blocks that share a work item, neighbours in the grid: 1, or a block is a group
  kLaunchConstants
};

constexpr int64_t kMostThreads = 1024;  // a block
constexpr int64_t kMostBlocksOfCluster = 8;

}  // namespace ingot::core::cuda
