// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ingot::core::cpu {

// Makes the word at offset `place` of `code` refer to `target`, both offsets in `code`, as the ELF
// relocation `type` of the machine (EM_X86_64, EM_AARCH64) says. InternalError if that depends on where the
// code is loaded, or if the target is too far away.
void relocate(std::span<std::byte> code, uint16_t machine, uint64_t type, uint64_t place, int64_t target);

}  // namespace ingot::core::cpu
