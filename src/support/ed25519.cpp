// SPDX-License-Identifier: Apache-2.0
#include "support/ed25519.h"

#include <sodium.h>

#include "support/error.h"

namespace ingot::core {
namespace {

static_assert(sizeof(PublicKey) == crypto_sign_PUBLICKEYBYTES && sizeof(SecretKey) == crypto_sign_SEEDBYTES &&
              sizeof(Ed25519Signature) == crypto_sign_BYTES);

auto* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const auto* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

struct KeyPair {
  PublicKey open{};
  std::array<std::byte, crypto_sign_SECRETKEYBYTES> secret{};

  explicit KeyPair(const SecretKey& seed) {
    crypto_sign_seed_keypair(raw(open.data()), raw(secret.data()), raw(seed.data()));
  }
  ~KeyPair() { sodium_memzero(secret.data(), secret.size()); }
};

}  // namespace

SecretKey make_secret_key() {
  if (sodium_init() < 0) throw InternalError("the system gives no random numbers");
  SecretKey key;
  randombytes_buf(key.data(), key.size());
  return key;
}

PublicKey public_key_of(const SecretKey& key) { return KeyPair(key).open; }

Ed25519Signature sign(Bytes message, const SecretKey& key) {
  const KeyPair pair(key);
  Ed25519Signature signature;
  crypto_sign_detached(raw(signature.data()), nullptr, raw(message.data()), message.size(),
                       raw(pair.secret.data()));
  return signature;
}

bool is_signed(Bytes message, const Ed25519Signature& signature, const PublicKey& key) {
  return crypto_sign_verify_detached(raw(signature.data()), raw(message.data()), message.size(),
                                     raw(key.data())) == 0;
}

}  // namespace ingot::core
