// SPDX-License-Identifier: Apache-2.0
#include "engine/signature.h"

#include <algorithm>

#include <fmt/core.h>

#include "engine/container.h"
#include "support/error.h"

namespace ingot::core {
namespace {

// Begins with what it is, so that a signature of something else never fits.
std::vector<std::byte> signed_message(const EngineFile& file) {
  const std::string title = fmt::format("ingot engine, format {}\n", file.format());
  std::vector<std::byte> message(as_bytes(title).begin(), as_bytes(title).end());
  const Digest identity = file.identity();
  message.insert(message.end(), identity.begin(), identity.end());
  return message;
}

[[noreturn]] void refuse_signature(std::string problem, std::string_view advice) {
  throw UserError("INGOT-U222", std::move(problem), std::string(advice));
}

}  // namespace

void require_signature(const EngineFile& file, std::span<const PublicKey> trusted) {
  const auto& given = file.signature();
  if (!given)
    refuse_signature("the engine is not signed, and trust=\"signed\" runs only signed ones",
                     "sign it with `ingot sign`, or load it with trust=\"any\" if you trust its origin");
  if (std::ranges::find(trusted, given->key) == trusted.end())
    refuse_signature(fmt::format("the engine is signed with the key {}, which is none of the {} trusted ones",
                                 hex(given->key), trusted.size()),
                     "add the key to the file of trusted keys if you trust its owner");
  if (!is_signed(signed_message(file), given->signature, given->key))
    refuse_signature(fmt::format("the engine's signature with the key {} is wrong", hex(given->key)),
                     "get the engine again from where it was signed");
  file.verify_all();
}

std::vector<std::byte> signed_header(const EngineFile& file, const SecretKey& key) {
  file.verify_all();
  return with_signature(file.header(), {public_key_of(key), sign(signed_message(file), key)});
}

}  // namespace ingot::core
