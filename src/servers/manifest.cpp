// SPDX-License-Identifier: Apache-2.0
#include "servers/manifest.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

namespace ingot::core {
namespace {

// Begins with what it is, so that a signature of something else never fits.
std::string statement_of(const Digest& key, const Manifest& manifest) {
  return fmt::format("ingot cache entry, format 1\nkey {}\nlength {}\nsha256 {}\n", hex(key), manifest.length,
                     hex(manifest.content));
}

// The rest of the next line, which must begin with `name` and a space.
std::string_view take_line(std::string_view& text, std::string_view name) {
  const size_t end = text.find('\n');
  if (end == text.npos) return {};
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') return {};
  return line.substr(name.size() + 1);
}

template <size_t kSize>
bool read_hex(std::string_view text, std::array<std::byte, kSize>& bytes) {
  if (text.size() != 2 * kSize) return false;
  for (size_t i = 0; i < kSize; ++i) {
    uint8_t value = 0;
    const char* const digits = text.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2) return false;
    bytes[i] = std::byte{value};
  }
  return true;
}

bool read_number(std::string_view text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

std::string sign_manifest(const Digest& key, const Manifest& manifest, const SecretKey& secret) {
  const std::string statement = statement_of(key, manifest);
  return fmt::format("{}signer {}\nsignature {}\n", statement, hex(public_key_of(secret)),
                     hex(sign(as_bytes(statement), secret)));
}

std::variant<Manifest, std::string> open_manifest(std::string_view text, const Digest& key,
                                                  std::span<const PublicKey> trusted) {
  Manifest manifest;
  PublicKey signer;
  Ed25519Signature signature;
  take_line(text, "ingot");
  take_line(text, "key");  // that of the statement below must be the one asked for
  const bool is_whole = read_number(take_line(text, "length"), manifest.length) &&
                        read_hex(take_line(text, "sha256"), manifest.content) &&
                        read_hex(take_line(text, "signer"), signer) &&
                        read_hex(take_line(text, "signature"), signature) && text.empty();
  if (!is_whole) return "it has no signed manifest";
  if (std::ranges::find(trusted, signer) == trusted.end())
    return fmt::format("it is signed with the key {}, which is none of the {} trusted ones", hex(signer),
                       trusted.size());
  if (!is_signed(as_bytes(statement_of(key, manifest)), signature, signer))
    return fmt::format("its signature with the key {} is wrong", hex(signer));
  return manifest;
}

}  // namespace ingot::core
