// SPDX-License-Identifier: Apache-2.0
#include "engine/signature.h"

#include <gmock/gmock.h>

#include <cstring>

#include "engine/container.h"
#include "support/error.h"
#include "tests/engine/engines.h"

namespace ingot::core {
namespace {

using ::testing::HasSubstr;
using testing::open;
using testing::to_bytes;
using FileBytes = std::vector<std::byte>;

class SignatureTest : public ::testing::Test {
 protected:
  FileBytes signed_bytes(const SecretKey& key) const {
    FileBytes bytes = to_bytes(testing::small_engine());
    const FileBytes header = signed_header(*open(bytes), key);
    std::ranges::copy(header, bytes.begin());
    return bytes;
  }
  // As somebody who can compute checksums would change a header.
  static FileBytes resealed(const FileBytes& bytes, size_t flipped) {
    FileBytes changed = bytes;
    EngineSignature signature;
    std::memcpy(&signature, changed.data() + kSignatureOffset, sizeof(signature));
    reinterpret_cast<std::byte*>(&signature)[flipped] ^= std::byte{1};
    std::ranges::copy(with_signature(Bytes(changed).first(kHeaderBytes), signature), changed.begin());
    return changed;
  }
  // Why these bytes may not run; "" if they may.
  std::string refusal(const FileBytes& bytes) const {
    try {
      require_signature(*open(bytes), trusted_);
    } catch (const UserError& error) {
      return std::string(error.details().code) + " " + error.details().message;
    }
    return "";
  }

  SecretKey key_ = make_secret_key(), other_ = make_secret_key();
  std::vector<PublicKey> trusted_ = {public_key_of(make_secret_key()), public_key_of(key_)};
};

TEST_F(SignatureTest, OfATrustedKeyIsAccepted) {
  const FileBytes bytes = signed_bytes(key_);
  EXPECT_EQ(refusal(bytes), "");
  EXPECT_EQ(open(bytes)->signature()->key, public_key_of(key_));
}

TEST_F(SignatureTest, ChangesNothingButTheHeader) {
  const FileBytes plain = to_bytes(testing::small_engine()), bytes = signed_bytes(key_);
  EXPECT_TRUE(std::equal(plain.begin() + kHeaderBytes, plain.end(), bytes.begin() + kHeaderBytes));
  EXPECT_EQ(open(plain)->identity(), open(bytes)->identity());
  EXPECT_FALSE(open(plain)->signature());
}

TEST_F(SignatureTest, IsRequired) {
  EXPECT_THAT(refusal(to_bytes(testing::small_engine())), HasSubstr("INGOT-U222 the engine is not signed"));
}

TEST_F(SignatureTest, OfAnotherKeyIsRefused) {
  EXPECT_THAT(refusal(signed_bytes(other_)), HasSubstr("none of the 2 trusted ones"));
}

TEST_F(SignatureTest, WithAFlippedBitIsRefused) {
  const FileBytes bytes = signed_bytes(key_);
  for (size_t at = 0; at < sizeof(EngineSignature); ++at)
    EXPECT_THAT(refusal(resealed(bytes, at)), HasSubstr("INGOT-U222")) << at;
}

// Under the signature of another engine by the same key, with checksums that are right.
TEST_F(SignatureTest, OfAnotherEngineIsRefused) {
  EngineData other = testing::small_engine();
  other.name += "x";
  FileBytes bytes = to_bytes(other);
  const EngineSignature signature = *open(signed_bytes(key_))->signature();
  std::ranges::copy(with_signature(Bytes(bytes).first(kHeaderBytes), signature), bytes.begin());
  EXPECT_THAT(refusal(bytes), HasSubstr("is wrong"));
}

// Sections are checked by SHA-256: here XXH3-128 is as good as right.
TEST_F(SignatureTest, CoversEverySection) {
  const FileBytes bytes = signed_bytes(key_);
  const auto whole = open(bytes);
  for (const SectionInfo& section : whole->sections()) {
    if (section.name != "weights" && section.name != "images") continue;
    FileBytes changed = bytes;
    changed[section.offset] ^= std::byte{1};
    const auto file = EngineFile::open(Bytes(changed), nullptr, Checksums::kIgnore);
    EXPECT_THROW(require_signature(*file, trusted_), UserError) << section.name;
  }
}

TEST_F(SignatureTest, IsNotGivenToDamagedFiles) {
  FileBytes bytes = to_bytes(testing::small_engine());
  bytes[open(bytes)->sections().back().offset] ^= std::byte{1};
  const auto file = EngineFile::open(Bytes(bytes), nullptr);
  EXPECT_THROW(signed_header(*file, key_), UserError);
}

}  // namespace
}  // namespace ingot::core
