// SPDX-License-Identifier: Apache-2.0
// `ingot cache ...`: the entries that builds keep on disk.
#include <fmt/chrono.h>
#include <fmt/core.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.h"
#include "cli/output_file.h"
#include "ingot/build.h"

namespace ingot::cli {
namespace {

using Json = nlohmann::json;

const char* folder_of(const CacheCommand& command) {
  return command.folder.empty() ? nullptr : command.folder.c_str();
}

Json listing(const CacheCommand& command) {
  ingot_text* text = nullptr;
  check(ingot_cache_list(folder_of(command), &text));
  return Json::parse(take_text(text));
}

void print_json(const Json& json) { fmt::print("{}\n", json.dump(2)); }

// Without `bytes` to what builds may keep.
void collect(const CacheCommand& command, std::optional<uint64_t> bytes) {
  const Json before = listing(command);
  check(ingot_cache_collect(folder_of(command), bytes.value_or(before["limit"].get<uint64_t>())));
  const Json after = listing(command);
  const size_t removed =
      before["entries"].size() - std::min(before["entries"].size(), after["entries"].size());
  if (command.json)
    return print_json(
        {{"removed", removed}, {"entries", after["entries"].size()}, {"bytes", after["bytes"]}});
  fmt::print("{} entries removed, {} of {} bytes left\n", removed, after["entries"].size(),
             after["bytes"].get<uint64_t>());
}

}  // namespace

void cache_list(const CacheCommand& command) {
  const Json json = listing(command);
  if (command.json) return print_json(json);
  for (const Json& entry : json["entries"]) {
    const auto used = static_cast<std::time_t>(entry["used"].get<uint64_t>());
    fmt::print("{}  {:>10}  {:%Y-%m-%d %H:%M}\n", entry["key"].get<std::string>(),
               entry["bytes"].get<uint64_t>(), fmt::localtime(used));
  }
}

void cache_stats(const CacheCommand& command) {
  Json json = listing(command);
  json["entries"] = json["entries"].size();
  if (command.json) return print_json(json);
  fmt::print("{}: {} entries, {} of at most {} bytes\n", json["folder"].get<std::string>(),
             json["entries"].get<size_t>(), json["bytes"].get<uint64_t>(), json["limit"].get<uint64_t>());
}

void cache_why(const CacheCommand& command) {
  ingot_text* text = nullptr;
  check(ingot_cache_describe(folder_of(command), command.key.c_str(), &text));
  const Json json = Json::parse(take_text(text));
  if (command.json) return print_json(json);
  fmt::print("{} of {} bytes, found by the SHA-256 of this text:\n{}\n", json["kind"].get<std::string>(),
             json["bytes"].get<uint64_t>(), json["text"].get<std::string>());
}

void cache_verify(const CacheCommand& command) {
  ingot_text* text = nullptr;
  check(ingot_cache_verify(folder_of(command), &text));
  const Json json = Json::parse(take_text(text));
  if (command.json) return print_json(json);
  for (const Json& entry : json["damaged"])
    fmt::print("{} removed: {}\n", entry["key"].get<std::string>(), entry["reason"].get<std::string>());
  fmt::print("{} entries checked, {} damaged\n", json["entries"].get<size_t>(), json["damaged"].size());
}

void cache_collect(const CacheCommand& command) { collect(command, command.bytes); }

void cache_clear(const CacheCommand& command) { collect(command, 0); }

void cache_bundle(const CacheCommand& command) {
  ingot_text* text = nullptr;
  check_output_path(command.file);
  check(ingot_cache_bundle(folder_of(command), command.file.c_str(), &text));
  const Json json = Json::parse(take_text(text));
  if (command.json) return print_json(json);
  fmt::print("{}: {} entries, {} bytes\n", command.file, json["entries"].get<size_t>(),
             json["bytes"].get<uint64_t>());
}

void cache_unbundle(const CacheCommand& command) {
  ingot_text* text = nullptr;
  check(ingot_cache_unbundle(folder_of(command), command.file.c_str(), &text));
  const Json json = Json::parse(take_text(text));
  if (command.json) return print_json(json);
  fmt::print("{} entries added\n", json["entries"].get<size_t>());
}

}  // namespace ingot::cli
