// SPDX-License-Identifier: Apache-2.0
// XXH3-128 of the xxHash library, once for each instruction set that it has loops for; all give the same
// result.
#pragma once

#include "support/hash.h"

namespace ingot::core {

Checksum xxh3_portable(Bytes data);
Checksum xxh3_avx2(Bytes data);  // only where the processor has AVX2

}  // namespace ingot::core
