// SPDX-License-Identifier: Apache-2.0
#include "ingot/ingot.h"

extern "C" {

uint32_t ingot_abi_version(void) { return INGOT_ABI_VERSION; }
const char* ingot_version(void) { return INGOT_VERSION; }

}  // extern "C"
