// SPDX-License-Identifier: Apache-2.0
// The compression function of SHA-256, in the ways it can be computed. For sha256.cpp and its tests.
#pragma once

#include <array>
#include <cstdint>

#include "support/hash.h"

namespace ingot::core {

using DigestState = std::array<uint32_t, 8>;

// Each takes whole blocks of 64 bytes into `state`.
void sha256_blocks(DigestState& state, Bytes blocks);  // the fastest way that this processor has
void sha256_blocks_portable(DigestState& state, Bytes blocks);

// The x86 SHA extensions: only where `has_sha_instructions`.
bool has_sha_instructions();
void sha256_blocks_x86(DigestState& state, Bytes blocks);

}  // namespace ingot::core
