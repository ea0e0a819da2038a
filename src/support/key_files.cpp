// SPDX-License-Identifier: Apache-2.0
#include "support/key_files.h"

#include <cerrno>
#include <charconv>
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "support/error.h"
#include "support/file.h"
#include "support/file_errors.h"
#include "support/hash.h"
#include "support/paths.h"

namespace ingot::core {
namespace {

constexpr uint32_t kForUser = 0600, kForAll = 0644;  // permissions
constexpr std::string_view kSecretKind = "ingot-secret-key";
constexpr std::string_view kPublicKind = "ingot-public-key";
using KeyBytes = std::array<std::byte, 32>;
static_assert(std::is_same_v<KeyBytes, PublicKey> && std::is_same_v<KeyBytes, SecretKey>);

[[noreturn]] void refuse_keys(const std::filesystem::path& path, std::string_view problem,
                              std::string_view advice) {
  throw UserError("INGOT-U225", fmt::format("'{}' {}", to_text(path), problem), std::string(advice));
}

// Exclusively: a key that is overwritten is lost.
void write_key(const std::filesystem::path& path, std::string_view line, uint32_t permissions) {
  const int file = kSystemFiles.create_limited(path.c_str(), permissions);
  if (file < 0 && errno == EEXIST)
    refuse_keys(path, "exists already, and a key that is overwritten is lost", "give another name");
  if (file < 0) fail_on_file("create", path, errno);
  const bool is_whole =
      kSystemFiles.write(file, line.data(), line.size()) == static_cast<int64_t>(line.size());
  const int failure = errno;
  kSystemFiles.close(file);
  if (!is_whole) fail_on_file("write", path, failure);
}

bool parse_hex(std::string_view text, KeyBytes& key) {
  if (text.size() != 2 * key.size()) return false;
  for (size_t i = 0; i < key.size(); ++i) {
    uint8_t byte = 0;
    const char* const end = text.data() + 2 * i + 2;
    const auto [stop, error] = std::from_chars(end - 2, end, byte, 16);
    if (error != std::errc() || stop != end) return false;
    key[i] = std::byte{byte};
  }
  return true;
}

std::vector<KeyBytes> read_keys(const std::filesystem::path& path, std::string_view kind) {
  std::vector<KeyBytes> keys;
  std::istringstream lines(read_text_file(path));
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line);
    std::string found, digits;
    if (!(words >> found) || found.starts_with('#')) continue;
    words >> digits;
    if (found != kind || !parse_hex(digits, keys.emplace_back()))
      refuse_keys(path, fmt::format("has no key in line {}: expected \"{} HEX\"", number, kind),
                  "`ingot cache keygen FILE` writes a secret key to FILE and its public key to FILE.pub");
  }
  return keys;
}

}  // namespace

PublicKey create_key_files(const std::filesystem::path& path) {
  const SecretKey secret = make_secret_key();
  const PublicKey open = public_key_of(secret);
  write_key(path, fmt::format("{} {}\n", kSecretKind, hex(secret)), kForUser);
  std::filesystem::path public_path = path;
  public_path += ".pub";
  write_key(public_path, fmt::format("{} {}\n", kPublicKind, hex(open)), kForAll);
  return open;
}

SecretKey read_secret_key(const std::filesystem::path& path) {
  FileFacts facts;
  constexpr uint32_t kOthers = 077;
  if (kSystemFiles.describe(path.c_str(), true, &facts) == 0 && (facts.permissions & kOthers) != 0)
    refuse_keys(path, "can be read by others, and holds a secret key", "chmod 600, or make a new one");
  const std::vector<SecretKey> keys = read_keys(path, kSecretKind);
  if (keys.size() != 1)
    refuse_keys(path, fmt::format("has {} secret keys, not one", keys.size()), "give a file with one key");
  return keys[0];
}

std::vector<PublicKey> read_public_keys(const std::filesystem::path& path) {
  std::vector<PublicKey> keys = read_keys(path, kPublicKind);
  if (keys.empty()) refuse_keys(path, "has no public key", "add the line of a .pub file");
  return keys;
}

}  // namespace ingot::core
