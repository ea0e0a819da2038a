// SPDX-License-Identifier: Apache-2.0
// Small helpers for messages that people read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ingot::core {

// The candidate with the smallest edit distance, or "" if none is close enough to be a typing mistake.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates);

// "1.5 MiB", "312 bytes".
std::string format_bytes(uint64_t bytes);

}  // namespace ingot::core
