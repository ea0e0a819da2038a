// SPDX-License-Identifier: Apache-2.0
// Ed25519 signatures.
#pragma once

#include <array>
#include <cstddef>

#include "support/bytes.h"

namespace ingot::core {

using PublicKey = std::array<std::byte, 32>;
using SecretKey = std::array<std::byte, 32>;  // the seed of RFC 8032
using Ed25519Signature = std::array<std::byte, 64>;

SecretKey make_secret_key();  // from the system's random numbers
PublicKey public_key_of(const SecretKey& key);
Ed25519Signature sign(Bytes message, const SecretKey& key);
bool is_signed(Bytes message, const Ed25519Signature& signature, const PublicKey& key);

}  // namespace ingot::core
