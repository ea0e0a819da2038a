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

// With the x86 SHA extensions; requires `has_sha_instructions`.
bool has_sha_instructions();
void sha256_blocks_x86(DigestState& state, Bytes blocks);

}  // namespace ingot::core
