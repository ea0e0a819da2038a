// SPDX-License-Identifier: Apache-2.0
// Images as the bytes of a cache entry.
#pragma once

#include <optional>
#include <vector>

#include "engine/program.h"

namespace ingot::core {

std::vector<std::byte> encode_image(const Image& image);  // all but its key
std::optional<Image> decode_image(Bytes bytes);           // nothing if they are not those of an image

}  // namespace ingot::core
