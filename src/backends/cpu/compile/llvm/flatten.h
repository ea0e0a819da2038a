// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ingot::core::cpu {

// Flattens an ELF object in memory to a kernel binary: text, then read-only data, with relocations applied.
// It runs at any address that is a multiple of 64. Throws InternalError for undefined symbols, writable data,
// and relocations that need an absolute address.
std::vector<std::byte> flatten(std::span<const char> object);

}  // namespace ingot::core::cpu
