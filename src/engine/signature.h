// SPDX-License-Identifier: Apache-2.0
// Who vouches for an engine file: Ed25519 over its format and its identity, the SHA-256 of the section table,
// which has the SHA-256 of each section.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/engine_file.h"
#include "support/ed25519.h"

namespace ingot::core {

// Throws UserError INGOT-U222 unless one of `trusted` signed the file, and as of EngineFile::verify_all: it
// reads the whole file. The file's memory must be nobody else's.
void require_signature(const EngineFile& file, std::span<const PublicKey> trusted);

// The header of the signed file, which differs from `file` in nothing else. Checks all of it first.
std::vector<std::byte> signed_header(const EngineFile& file, const SecretKey& key);

}  // namespace ingot::core
