// SPDX-License-Identifier: Apache-2.0
// One kernel call on memory of the host, wherever the kernel runs: for checks and tests of kernels.
#pragma once

#include <optional>
#include <span>

#include "backends/executor.h"
#include "types/dim.h"

namespace ingot::core {

// The kernel gets the address of memory[offset], or of the same place in a copy on its device.
struct HostBuffer {
  std::span<std::byte> memory;
  size_t offset = 0;
};

// Runs the only image of `images` by `launch` and waits. `sizes` has the symbols of the launch.
std::optional<CallFailure> run_call(const Executor& executor, const LoadedImages& images, Launch launch,
                                    std::span<const HostBuffer> buffers, const SymbolValues& sizes,
                                    ThreadPool* pool);

}  // namespace ingot::core
