// SPDX-License-Identifier: Apache-2.0
// The compression function of SHA-256, in its implementations. For sha256.cpp and its tests.
#pragma once

#include <array>
#include <cstdint>

#include "support/hash.h"

namespace ingot::core {

using DigestState = std::array<uint32_t, 8>;

// Each absorbs whole blocks of 64 bytes into `state`.
void sha256_blocks(DigestState& state, Bytes blocks);  // the fastest one that this processor supports
void sha256_blocks_portable(DigestState& state, Bytes blocks);

// Absorbs `bytes`, whole blocks, from two places into two states. Faster than one after the other: an
// instruction of one state does not wait for those of the other.
void sha256_two(DigestState& first, DigestState& second, const std::byte* of_first,
                const std::byte* of_second, size_t bytes);

// With the x86 SHA extensions; require `has_sha_instructions`.
bool has_sha_instructions();
void sha256_blocks_x86(DigestState& state, Bytes blocks);
void sha256_two_x86(DigestState& first, DigestState& second, const std::byte* of_first,
                    const std::byte* of_second, size_t bytes);

}  // namespace ingot::core
