// SPDX-License-Identifier: Apache-2.0
// Keys of Ed25519 as lines of text: "ingot-secret-key HEX" and "ingot-public-key HEX", each with a comment
// after it if one likes. Empty lines and lines that begin with # do not count. Errors are UserErrors,
// INGOT-U225.
#pragma once

#include <filesystem>
#include <vector>

#include "support/ed25519.h"

namespace ingot::core {

// Writes a new secret key to `path`, for this user alone, and its public key to `path`.pub, which it returns.
// Neither may exist.
PublicKey create_key_files(const std::filesystem::path& path);

// The one secret key of a file, which nobody else may read.
SecretKey read_secret_key(const std::filesystem::path& path);

// The public keys of a file, at least one.
std::vector<PublicKey> read_public_keys(const std::filesystem::path& path);

}  // namespace ingot::core
