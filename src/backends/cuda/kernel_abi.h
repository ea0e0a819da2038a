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

// A collective's own kernel reduces over memory that the GPUs of the ranks write for each other: each GPU has
// a mailbox, and each rank writes its elements into those of all others. The name of its image begins with
// kPeerEntry and is that of the kernel; its arguments are the operand, the result, the number of elements
// (i64), and kPeerArguments words, which follow. One whose name ends with kPeerNext also does the launch
// behind it, which reads the result: that one's buffers and symbols are further arguments.
//
// A mailbox is two halves, used in turns, of one part per rank; a part is lines of 16 bytes, each of which
// has kPeerLine bytes of elements: of each 8 bytes the lower half is elements, the upper half kPeerArrived
// once they have arrived, and 0 once they have been read. So a line needs no order among its stores. A rank
// that has all of one collective's elements has proof that all ranks are done with the one before: two halves
// are enough.
constexpr const char* kPeerEntry = "ingot_peer_";
constexpr const char* kPeerNext = "_and_next";
constexpr int kMostPeers = 8;  // ranks
constexpr int64_t kPeerLine = 8, kPeerThreads = 256, kMostPeerBlocks = 64;
constexpr int64_t kMailboxBytes = int64_t{2} << 20;
enum PeerArgument : uint8_t {
  kMailboxes,                             // of each rank, by rank; this rank's is memory of its own GPU
  kPeerCounts = kMailboxes + kMostPeers,  // two u32 on this GPU: collectives so far, and blocks of this one
  kPeerIsOver,                            // an i32 of the host: not 0 after a failure, which ends all waiting
  kPeerRank,
  kPeerRanks,
  kPeerArguments
};
// Lines of a part, and bytes that a rank may have in one collective.
constexpr int64_t peer_lines(int64_t ranks) { return kMailboxBytes / (2 * ranks * 2 * kPeerLine); }
// More than so many bytes are faster by NCCL, which sends each byte once or twice.
constexpr int64_t most_peer_bytes(int64_t ranks) { return peer_lines(ranks) * kPeerLine / (ranks - 1); }

constexpr int64_t kMostThreads = 1024;                 // per block
constexpr size_t kMostMaps = 8, kMostArguments = 400;  // of a kernel: they fit in its 4 KB of parameters
constexpr int64_t kMostBlocksOfCluster = 8;

}  // namespace ingot::core::cuda
