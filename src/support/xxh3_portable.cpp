// SPDX-License-Identifier: Apache-2.0
#include "support/xxh3.h"

#include <cstring>

#define INGOT_XXH3_NAME xxh3_portable
#include "support/xxh3.inc"
