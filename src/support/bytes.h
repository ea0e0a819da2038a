// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace ingot::core {

using Bytes = std::span<const std::byte>;
using Checksum = std::array<std::byte, 16>;  // XXH3-128, canonical (big-endian) byte order
using Digest = std::array<std::byte, 32>;    // SHA-256

inline Bytes as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

}  // namespace ingot::core
