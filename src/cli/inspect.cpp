// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/commands.h"
#include "cli/models.h"
#include "cli/side.h"

namespace ingot::cli {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& json, const char* name) { return json[name].get<std::string>(); }

std::string describe_range(const Json& range) {
  const auto low = range[0].get<int64_t>(), high = range[1].get<int64_t>();
  if (low == high) return fmt::format("{}", low);
  return high == INT64_MAX ? fmt::format("{}..", low) : fmt::format("{}..{}", low, high);
}

// Which of several levels this machine runs, and why.
void print_levels(const Json& json) {
  if (!json["levels"].empty()) fmt::print("levels, the best first\n");
  bool is_better = true;
  for (const Json& level : json["levels"]) {
    const bool runs = text_of(level, "missing").empty(), is_best = runs && is_better;
    is_better &= !runs;
    const std::string verdict = is_best ? "runs here, the best of those that can"
                                : runs  ? "can run here"
                                        : "cannot run here: " + text_of(level, "missing");
    fmt::print("  {}: {} kernels, {} bytes of code; {}\n", text_of(level, "cpu"),
               level["kernels"].get<size_t>(), level["code_bytes"].get<size_t>(), verdict);
  }
}

void print_metadata(const Json& json) {
  if (!json["metadata"].empty()) fmt::print("metadata\n");
  for (const auto& [key, value] : json["metadata"].items())
    fmt::print("  {}: {}\n", key, value.get<std::string>());
}

void print_ports(const Json& json, const char* name) {
  if (!json[name].empty()) fmt::print("{}\n", name);
  for (const Json& port : json[name]) {
    std::vector<std::string> ranges;
    for (const Json& range : port["ranges"]) ranges.push_back(describe_range(range));
    fmt::print("  {}: {}[{}], sizes [{}]\n", text_of(port, "name"), text_of(port, "dtype"),
               fmt::join(port["dims"].get<std::vector<std::string>>(), ", "), fmt::join(ranges, ", "));
  }
}

// Conditions on the sizes of a call.
void print_conditions(const Json& json) {
  if (!json["conditions"].empty()) fmt::print("conditions\n");
  for (const Json& condition : json["conditions"]) {
    const std::string kind = text_of(condition, "kind"), message = text_of(condition, "message"),
                      source = text_of(condition, "source");
    fmt::print("  {} ({}{}{}){}{}\n", text_of(condition, "condition"), kind, message.empty() ? "" : ": ",
               message, source.empty() ? "" : " -- ", source);
  }
}

void print_weights(const Json& json) {
  uint64_t bytes = 0;
  for (const Json& weight : json["weights"])
    bytes += weight["kept"].get<bool>() ? weight["bytes"].get<uint64_t>() : 0;
  fmt::print("weights: {} of the model, in {} form, {} tensors of {} bytes\n", json["sources"].size(),
             text_of(json, "weights_form"), json["weights"].size(), bytes);
  for (const Json& source : json["sources"]) {
    fmt::print("  {}: {}[{}] sha256 {}\n", text_of(source, "name"), text_of(source, "dtype"),
               fmt::join(source["shape"].get<std::vector<int64_t>>(), ","),
               source.value("sha256", "unknown"));
  }
}

// Counts equal steps, in the order of their first run.
void print_steps(const Json& program) {
  std::vector<std::pair<std::string, size_t>> counts;
  std::set<std::string> runners;
  for (const Json& step : program["steps"]) runners.insert(text_of(step, "runs_on"));
  for (const Json& step : program["steps"]) {
    const std::string on = runners.size() > 1 ? fmt::format(" [{}]", text_of(step, "runs_on")) : "";
    const std::string name = text_of(step, "name") + on;
    const auto known = std::ranges::find(counts, name, &std::pair<std::string, size_t>::first);
    known == counts.end() ? void(counts.emplace_back(name, 1)) : void(++known->second);
  }
  fmt::print("{} steps, memory {} bytes at typical sizes ({} live at once, {} without sharing)\n",
             program["steps"].size(), program["arena_bytes"].get<int64_t>(),
             program["live_bytes"].get<int64_t>(), program["buffer_bytes"].get<int64_t>());
  for (const auto& [name, count] : counts) fmt::print("  {} x {}\n", count, name);
}

void print_summary(const Json& json) {
  fmt::print("engine {} for {}, from {}\n", text_of(json, "name"), text_of(json, "target"),
             text_of(json, "origin"));
  fmt::print("runs on {}\n", fmt::join(json["platforms"].get<std::vector<std::string>>(), ", "));
  fmt::print("file format {}, {} bytes, identity {}\n", json["format"].get<int>(),
             json["bytes"].get<uint64_t>(), text_of(json, "identity"));
  print_levels(json);
  for (const Json& section : json["sections"]) {
    fmt::print("  {:<10} at {:>11}, {:>11} bytes, sha256 {}\n", text_of(section, "name"),
               section["offset"].get<uint64_t>(), section["bytes"].get<uint64_t>(),
               text_of(section, "sha256"));
  }
  fmt::print("key: {} bytes of text, sha256 {}\n", text_of(json, "key").size(), text_of(json, "key_sha256"));
  print_metadata(json);
  for (const char* ports : {"inputs", "outputs", "states"}) print_ports(json, ports);
  print_conditions(json);
  print_weights(json);
  print_steps(json["main"]);
}

std::string content_of_file(const std::string& file) {
  ingot_text* text = nullptr;
  check(ingot_inspect_file(file.c_str(), &text));
  return take_text(text);
}

}  // namespace

void inspect(const InspectCommand& command) {
  if (is_model_file(command.file)) {
    const std::string program = describe_model(command.file);
    fmt::print("{}\n", command.json ? nlohmann::json{{"program", program}}.dump(2) : program);
    return;
  }
  const std::string json = content_of_file(command.file);
  if (command.json) {
    fmt::print("{}\n", json);
  } else {
    print_summary(Json::parse(json));
  }
}

void verify(const InspectCommand& command) {
  check(ingot_verify_file(command.file.c_str()));
  const auto json = Json::parse(content_of_file(command.file));
  if (command.json) {
    fmt::print("{}\n", Json{{"file", command.file}, {"valid", true}, {"levels", json["levels"]}}.dump());
  } else {
    fmt::print("{}: every byte is intact\n", command.file);
    print_levels(json);
  }
}

void explain(const std::string& code, bool json) {
  const char* page = ingot_explain(code.c_str());
  if (page == nullptr) throw CommandError(fmt::format("there is no error code \"{}\"", code), 2);
  if (json) {
    fmt::print("{}\n", nlohmann::json{{"code", code}, {"page", page}}.dump(2));
  } else {
    fmt::print("{}\n", page);
  }
}

}  // namespace ingot::cli
