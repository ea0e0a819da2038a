// SPDX-License-Identifier: Apache-2.0
// Collectives of the fake device: by exchanges of its group, as soon as it is their turn in the queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/executor.h"

namespace ingot::core::fake {

// Everything about a collective but its addresses, as words: equal words do the same.
std::vector<int64_t> words_of(const DeviceCollective& collective);
DeviceCollective collective_of(std::span<const int64_t> words);

size_t operand_bytes(const DeviceCollective& collective);
size_t result_bytes(const DeviceCollective& collective);

// Waits for the other ranks. `program`: BoundGroups::program.
void run_collective(const DeviceCollective& collective, uint64_t program, const std::byte* from,
                    std::byte* to);

}  // namespace ingot::core::fake
