// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/hash.h"

namespace ingot::core {

uint32_t crc32(Bytes data);  // as in ZIP and PNG: polynomial 0xedb88320

}  // namespace ingot::core
