// SPDX-License-Identifier: Apache-2.0
#include "support/ed25519.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "support/error.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/key_files.h"
#include "tests/support/temporary_folder.h"

namespace ingot::core {
namespace {

using ::testing::HasSubstr;

template <size_t N>
std::array<std::byte, N> from_hex(std::string_view digits) {
  std::array<std::byte, N> bytes;
  for (size_t i = 0; i < N; ++i)
    bytes[i] = static_cast<std::byte>(std::stoi(std::string(digits.substr(2 * i, 2)), nullptr, 16));
  return bytes;
}

// RFC 8032, section 7.1, tests 1 and 2.
struct Vector {
  std::string_view secret, open, message, signature;
};
constexpr Vector kVectors[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
     "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "r",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
     "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"},
};

TEST(Ed25519, AgreesWithTheStandard) {
  for (const Vector& vector : kVectors) {
    const auto secret = from_hex<32>(vector.secret);
    const auto signature = from_hex<64>(vector.signature);
    EXPECT_EQ(hex(public_key_of(secret)), vector.open);
    EXPECT_EQ(hex(sign(as_bytes(vector.message), secret)), vector.signature);
    EXPECT_TRUE(is_signed(as_bytes(vector.message), signature, from_hex<32>(vector.open)));
  }
}

TEST(Ed25519, RejectsEveryFlippedBit) {
  const SecretKey secret = make_secret_key();
  const PublicKey open = public_key_of(secret);
  std::array<std::byte, 20> message{};
  const Ed25519Signature signature = sign(message, secret);
  ASSERT_TRUE(is_signed(message, signature, open));
  const auto flipped = [](auto bytes, size_t bit) {
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    return bytes;
  };
  for (size_t bit = 0; bit < 8 * message.size(); ++bit)
    EXPECT_FALSE(is_signed(flipped(message, bit), signature, open)) << bit;
  for (size_t bit = 0; bit < 8 * signature.size(); ++bit)
    EXPECT_FALSE(is_signed(message, flipped(signature, bit), open)) << bit;
  for (size_t bit = 0; bit < 8 * open.size(); ++bit)
    EXPECT_FALSE(is_signed(message, signature, flipped(open, bit))) << bit;
}

class KeyFiles : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& text) {
    const std::filesystem::path path = folder_.path() / "keys";
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms(0600));
    return path;
  }
  static std::string refusal(const auto& read) {
    try {
      read();
    } catch (const UserError& error) {
      return std::string(error.details().code) + " " + error.details().message;
    }
    return "";
  }

  core::testing::TemporaryFolder folder_;
};

TEST_F(KeyFiles, AreReadAsTheyWereWritten) {
  const std::filesystem::path path = folder_.path() / "key";
  const PublicKey open = create_key_files(path);
  EXPECT_EQ(public_key_of(read_secret_key(path)), open);
  EXPECT_EQ(read_public_keys(path.string() + ".pub"), std::vector{open});
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
}

TEST_F(KeyFiles, AreNotOverwritten) {
  const std::filesystem::path path = folder_.path() / "key";
  create_key_files(path);
  const std::string before = read_text_file(path);
  EXPECT_THAT(refusal([&] { create_key_files(path); }), HasSubstr("exists"));
  EXPECT_EQ(read_text_file(path), before);
}

TEST_F(KeyFiles, ListKeysWithComments) {
  const std::string text = "# those who build\n\ningot-public-key " + std::string(kVectors[0].open) +
                           " build server\n  ingot-public-key " + std::string(kVectors[1].open) + "\n";
  const std::vector<PublicKey> keys = read_public_keys(write(text));
  EXPECT_EQ(keys, (std::vector{from_hex<32>(kVectors[0].open), from_hex<32>(kVectors[1].open)}));
}

TEST_F(KeyFiles, RefuseWhatIsNoKey) {
  const std::string open = "ingot-public-key " + std::string(kVectors[0].open);
  const std::string secret = "ingot-secret-key " + std::string(kVectors[0].secret);
  const auto read_open = [](const std::filesystem::path& path) {
    return refusal([&] { read_public_keys(path); });
  };
  const auto read_secret = [](const std::filesystem::path& path) {
    return refusal([&] { read_secret_key(path); });
  };
  EXPECT_THAT(read_open(write("")), HasSubstr("INGOT-U225"));
  EXPECT_THAT(read_open(write(secret)), HasSubstr("line 1"));
  EXPECT_THAT(read_open(write(open + "\n" + open.substr(0, 70))), HasSubstr("line 2"));
  EXPECT_THAT(read_open(write(open.substr(0, 79) + "+1")), HasSubstr("line 1"));
  EXPECT_THAT(read_secret(write(open)), HasSubstr("line 1"));
  EXPECT_THAT(read_secret(write(secret + "\n" + secret)), HasSubstr("2 secret keys"));
  EXPECT_THAT(read_secret(folder_.path() / "none"), HasSubstr("INGOT-U120"));
  const std::filesystem::path path = write(secret);
  EXPECT_EQ(read_secret(path), "");
  std::filesystem::permissions(path, std::filesystem::perms(0640));
  EXPECT_THAT(read_secret(path), HasSubstr("can be read by others"));
}

}  // namespace
}  // namespace ingot::core
