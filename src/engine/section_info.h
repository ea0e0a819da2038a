// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "support/ed25519.h"
#include "support/hash.h"

namespace ingot::core {

constexpr uint32_t kEngineFormatVersion = 6;
// The format of files with several levels, which older readers could not read. Files of one level have not
// changed.
constexpr uint32_t kLevelsFormatVersion = 7;
// The format of files, of any number of levels, with sizes that depend on the rank.
constexpr uint32_t kRanksFormatVersion = 8;
// The format of files whose inputs have multiples of a size that no input has by itself.
constexpr uint32_t kLinearSizesFormatVersion = 9;
constexpr uint32_t kLatestFormatVersion = kLinearSizesFormatVersion;
constexpr size_t kMostLevels = 16;

struct SectionInfo {
  std::string name;
  uint64_t offset = 0, length = 0;  // bytes, padding included
  Checksum checksum{};              // XXH3-128; of weights: over the checksums of their blocks
  Digest digest{};  // SHA-256; of weights: over the digests of their contents, in order of offset
};

// The signature of an engine file (signature.h).
struct EngineSignature {
  PublicKey key{};
  Ed25519Signature signature{};
};

// Whether checksums are compared: only tests of the checks after them use kIgnore.
enum class Checksums { kVerify, kIgnore };

}  // namespace ingot::core
