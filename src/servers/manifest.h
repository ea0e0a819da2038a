// SPDX-License-Identifier: Apache-2.0
// What a server has under an entry's key: which content belongs to it, and who says so.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "support/ed25519.h"
#include "support/hash.h"

namespace ingot::core {

struct Manifest {
  uint64_t length = 0;  // bytes of the content
  Digest content{};     // its SHA-256
};

constexpr size_t kMostManifestBytes = 1024;

// Text whose signature covers the key too: a manifest that moved to another key is a foreign one.
std::string sign_manifest(const Digest& key, const Manifest& manifest, const SecretKey& secret);

// What is said of that key by one of `trusted`, or why the text does not count.
std::variant<Manifest, std::string> open_manifest(std::string_view text, const Digest& key,
                                                  std::span<const PublicKey> trusted);

}  // namespace ingot::core
