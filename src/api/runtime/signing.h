// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "support/ed25519.h"

namespace ingot::core::api {

// The public keys of a file; null: of the file that INGOT_TRUSTED_KEYS names. UserError INGOT-U222 if there
// is none, INGOT-U225 if it is malformed.
std::vector<PublicKey> trusted_keys(const char* path);

}  // namespace ingot::core::api
