// SPDX-License-Identifier: Apache-2.0
// `ingot sign` and `ingot cache keygen`.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/output_file.h"

namespace ingot::cli {

void sign(const SignCommand& command) {
  const std::string& output = command.output.empty() ? command.engine : command.output;
  check_output_path(output);
  check(ingot_sign_file(command.engine.c_str(), command.key.c_str(), output.c_str()));
  if (command.json) {
    fmt::print("{}\n", nlohmann::json{{"output", output}}.dump(2));
  } else {
    fmt::print("{} is signed\n", output);
  }
}

void cache_keygen(const CacheCommand& command) {
  ingot_text* text = nullptr;
  check(ingot_create_key(command.file.c_str(), &text));
  const std::string key = take_text(text);
  if (command.json) {
    const nlohmann::json json = {
        {"secret_key_file", command.file}, {"public_key_file", command.file + ".pub"}, {"public_key", key}};
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}: the secret key, for those who build\n{}.pub: the public key, for those who load\n",
               command.file, command.file);
  }
}

}  // namespace ingot::cli
