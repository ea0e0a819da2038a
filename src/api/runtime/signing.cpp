// SPDX-License-Identifier: Apache-2.0
// Keys, and signatures of engine files.
#include "api/runtime/signing.h"

#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "api/runtime/host_access.h"
#include "engine/signature.h"
#include "runtime/engine.h"
#include "support/error.h"
#include "support/key_files.h"
#include "support/paths.h"

using namespace ingot::core;

std::vector<PublicKey> ingot::core::api::trusted_keys(const char* path) {
  const auto& variables = host().build_options();
  const auto variable = variables.find("trusted_keys");
  if (path == nullptr && variable != variables.end()) path = variable->second.c_str();
  if (path == nullptr || *path == '\0')
    throw UserError("INGOT-U222", "trust=\"signed\" needs a file with the public keys that are trusted",
                    "set INGOT_TRUSTED_KEYS to one, or pass trusted_keys");
  return read_public_keys(to_path(path));
}

extern "C" {

ingot_status* ingot_create_key(const char* path, ingot_text** public_key) {
  return api::guard([&] {
    api::require(path, "path");
    const PublicKey key = create_key_files(to_path(path));
    if (public_key != nullptr) *public_key = api::make_text(hex(key));
  });
}

ingot_status* ingot_sign_file(const char* path, const char* key, const char* output) {
  return api::guard([&] {
    api::require(path, "path");
    api::require(key, "key");
    const SecretKey secret = read_secret_key(to_path(key));
    const std::shared_ptr<const EngineFile> file = open_copy(to_path(path));
    const std::vector<std::byte> header = signed_header(*file, secret);
    write_file_atomically(to_path(output == nullptr ? path : output), [&](const Sink& sink) {
      sink(header);
      sink(file->bytes().subspan(header.size()));
    });
  });
}

}  // extern "C"
