// SPDX-License-Identifier: Apache-2.0
#include "api/compiler/metadata.h"

#include <fmt/core.h>

#include "api/runtime/checks.h"
#include "support/error.h"
#include "support/utf8.h"

namespace ingot::core::api {
namespace {

[[noreturn]] void refuse_entry(size_t index, const std::string& problem) {
  throw UserError("INGOT-U021", fmt::format("entry {} of the metadata {}", index, problem));
}

}  // namespace

std::map<std::string, std::string> read_user_metadata(const ingot_build_options& options) {
  std::map<std::string, std::string> metadata;
  if (options.metadata_count > 0) require(options.metadata, "metadata");
  for (size_t i = 0; i < options.metadata_count; ++i) {
    const auto& [key, value] = options.metadata[i];
    require(key, "metadata key");
    require(value, "metadata value");
    if (!is_utf8(key) || !is_utf8(value)) refuse_entry(i, "is not UTF-8");
    if (*key == '\0') refuse_entry(i, "has an empty key");
    if (!metadata.emplace(key, value).second) refuse_entry(i, fmt::format("repeats the key '{}'", key));
  }
  return metadata;
}

}  // namespace ingot::core::api
