// SPDX-License-Identifier: Apache-2.0
// XXH3-128 of the xxHash library, compiled once per instruction set that it has loops for; all return the
// same result.
#pragma once

#include "support/bytes.h"

namespace ingot::core {

Checksum xxh3_portable(Bytes data);
Checksum xxh3_avx2(Bytes data);  // only where the processor has AVX2

}  // namespace ingot::core
