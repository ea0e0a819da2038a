// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/array.h"

namespace ingot::cli {

// The safetensors format: 8 bytes of header length, a JSON header, data. Every offset is checked.
std::vector<Array> parse_safetensors(std::span<const char> bytes, const std::string& origin);

}  // namespace ingot::cli
