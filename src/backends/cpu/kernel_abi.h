// SPDX-License-Identifier: Apache-2.0
// The interface of both halves of the CPU backend: how the code of a kernel is called.
#pragma once

#include <string>
#include <vector>

#include "engine/launch.h"

namespace ingot::core::cpu {

// Kernel binaries are called as Linux has it, wherever they run: one engine file serves both systems.
#ifdef _WIN32
#define INGOT_KERNEL_CALL __attribute__((sysv_abi))
#else
#define INGOT_KERNEL_CALL
#endif

// The entry point of a kernel binary, at its first byte: processes items [begin, end) and returns a
// loops::KernelStatus. `scratch` is aligned to 64 bytes and exclusive to this call.
using KernelFunction = int64_t(INGOT_KERNEL_CALL*)(void* const* buffers, const int64_t* symbols,
                                                   int64_t begin, int64_t end, void* scratch);

struct KernelLaunch {
  std::vector<std::string> symbols;  // arguments, in order
  Dim work_items = 1;                // the flattened range that threads share
  Dim scratch_bytes = 0;             // per thread
  int64_t grain = 1;                 // parts of the range are multiples of it
  int64_t item_cost = 0;  // rough nanoseconds per item: determines how many threads are worth waking
};

// Positions in Launch::sizes and Launch::constants.
enum LaunchSize : uint8_t { kWorkItems, kScratchBytes, kLaunchSizes };
enum LaunchConstant : uint8_t { kGrain, kItemCost, kLaunchConstants };

inline Launch to_launch(const KernelLaunch& kernel) {
  Launch launch{.sizes = {kernel.work_items, kernel.scratch_bytes},
                .constants = {kernel.grain, kernel.item_cost}};
  for (const std::string& symbol : kernel.symbols) launch.symbols.push_back(Dim::symbol(symbol));
  return launch;
}

}  // namespace ingot::core::cpu
