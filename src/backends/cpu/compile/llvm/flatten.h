// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ingot::core::cpu {

// Turns an ELF object in memory into flat code: text, then read-only data, with relocations applied. It runs
// at any address that is a multiple of 64. Throws InternalError for undefined symbols, writable data, and
// relocations that need an address.
std::vector<std::byte> flatten(std::span<const char> object);

}  // namespace ingot::core::cpu
