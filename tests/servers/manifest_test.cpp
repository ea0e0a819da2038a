// SPDX-License-Identifier: Apache-2.0
#include "servers/manifest.h"

#include <gtest/gtest.h>

#include <array>

namespace ingot::core {
namespace {

class ManifestTest : public ::testing::Test {
 protected:
  bool counts(std::string_view text, const Digest& key) const {
    return std::holds_alternative<Manifest>(open_manifest(text, key, trusted_));
  }

  const SecretKey secret_ = make_secret_key(), foreign_ = make_secret_key();
  const std::array<PublicKey, 2> trusted_ = {public_key_of(make_secret_key()), public_key_of(secret_)};
  const Digest key_ = digest(as_bytes("key")), other_ = digest(as_bytes("other"));
  const Manifest manifest_{12345, digest(as_bytes("content"))};
  const std::string text_ = sign_manifest(key_, manifest_, secret_);
};

TEST_F(ManifestTest, IsReadAsItWasSigned) {
  const auto opened = open_manifest(text_, key_, trusted_);
  const auto* manifest = std::get_if<Manifest>(&opened);
  ASSERT_NE(manifest, nullptr);
  EXPECT_EQ(manifest->length, manifest_.length);
  EXPECT_EQ(manifest->content, manifest_.content);
  EXPECT_LE(text_.size(), kMostManifestBytes);
}

TEST_F(ManifestTest, BelongsToOneKey) { EXPECT_FALSE(counts(text_, other_)); }

TEST_F(ManifestTest, ForeignSignersDoNotCount) {
  EXPECT_FALSE(counts(sign_manifest(key_, manifest_, foreign_), key_));
  EXPECT_FALSE(std::holds_alternative<Manifest>(open_manifest(text_, key_, {})));
}

// The lines with the title and the key repeat what is known anyway.
TEST_F(ManifestTest, NoChangedByteAltersWhatItSays) {
  for (size_t i = 0; i < text_.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = text_;
      changed[i] = static_cast<char>(changed[i] ^ 1 << bit);
      const auto opened = open_manifest(changed, key_, trusted_);
      if (const auto* manifest = std::get_if<Manifest>(&opened)) {
        EXPECT_EQ(manifest->length, manifest_.length) << i;
        EXPECT_EQ(manifest->content, manifest_.content) << i;
      }
    }
  }
}

TEST_F(ManifestTest, CutAndLongerOnesDoNotCount) {
  for (size_t length = 0; length < text_.size(); ++length)
    EXPECT_FALSE(counts(std::string_view(text_).substr(0, length), key_)) << length;
  EXPECT_FALSE(counts(text_ + "\n", key_));
}

}  // namespace
}  // namespace ingot::core
