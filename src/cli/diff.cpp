// SPDX-License-Identifier: Apache-2.0
// `ingot diff`: what distinguishes two engines.
#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "cli/commands.h"

namespace ingot::cli {
namespace {

using Json = nlohmann::json;

Json inspected(const std::string& path) {
  ingot_text* text = nullptr;
  check(ingot_inspect_file(path.c_str(), &text));
  return Json::parse(take_text(text));
}

// By the text of `id`, what is shown for it.
std::map<std::string, std::string> by_id(const Json& items, const char* id, const char* shown) {
  std::map<std::string, std::string> result;
  for (const Json& item : items) result.emplace(item.at(id).get<std::string>(), item.at(shown).dump());
  return result;
}

Json names_only_in(const std::map<std::string, std::string>& items,
                   const std::map<std::string, std::string>& others) {
  Json names = Json::array();
  for (const auto& [id, shown] : items) {
    if (!others.contains(id)) names.push_back(Json::parse(shown));
  }
  return names;
}

// Of all levels, whichever this machine runs.
std::map<std::string, std::string> kernels_of(const Json& engine) {
  if (engine["levels"].empty()) return by_id(engine["kernels"], "key", "name");
  std::map<std::string, std::string> kernels;
  for (const Json& level : engine["levels"]) {
    const auto name = [&](const Json& image) {
      return Json(fmt::format("{} ({})", image["name"].get<std::string>(), level["cpu"].get<std::string>()));
    };
    for (const Json& image : level["images"]) kernels.emplace(image["key"], name(image).dump());
  }
  return kernels;
}

// How many steps each level has.
Json steps_of(const Json& engine) {
  Json steps = Json::object();
  for (const Json& level : engine["levels"]) steps[level["cpu"].get<std::string>()] = level["steps"];
  return steps;
}

Json compare_kernels(const Json& old_engine, const Json& new_engine) {
  const auto before = kernels_of(old_engine), after = kernels_of(new_engine);
  const Json removed = names_only_in(before, after), added = names_only_in(after, before);
  return {{"removed", removed}, {"added", added}, {"same", after.size() - added.size()}};
}

Json compare_weights(const Json& old_engine, const Json& new_engine) {
  std::map<std::string, Json> before;
  for (const Json& source : old_engine["sources"]) before.emplace(source["name"], source);
  Json changed = Json::array(), retyped = Json::array(), added = Json::array(), removed = Json::array();
  size_t same = 0;
  for (const Json& source : new_engine["sources"]) {
    const auto old_source = before.find(source["name"]);
    if (old_source == before.end()) {
      added.push_back(source["name"]);
      continue;
    }
    const Json& other = old_source->second;
    const bool has_type = other["dtype"] == source["dtype"] && other["shape"] == source["shape"];
    const bool has_value = other.value("sha256", "") == source.value("sha256", "");
    if (!has_type) retyped.push_back(source["name"]);
    if (has_type && !has_value) changed.push_back(source["name"]);
    same += has_type && has_value ? 1 : 0;
    before.erase(old_source);
  }
  for (const auto& [name, source] : before) removed.push_back(name);
  return {{"changed", changed}, {"retyped", retyped}, {"added", added}, {"removed", removed}, {"same", same}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The first lines of a key are the compiler and its options; what follows is the model's graph.
Json compare_keys(const Json& old_engine, const Json& new_engine) {
  constexpr size_t kOptionLines = 4;
  const auto before = lines_of(old_engine["key"]), after = lines_of(new_engine["key"]);
  Json options = Json::array(), graph = nullptr;
  for (size_t i = 0; i < std::max(before.size(), after.size()); ++i) {
    const std::string own = i < before.size() ? before[i] : "", other = i < after.size() ? after[i] : "";
    if (own == other) continue;
    const Json row = {{"old", own}, {"new", other}};
    if (i < kOptionLines) {
      options.push_back(row);
    } else if (graph.is_null()) {
      graph = row;
    }
  }
  return {{"options", options}, {"first_difference_of_graphs", graph}};
}

Json compare_plans(const Json& old_engine, const Json& new_engine) {
  Json rows = Json::object();
  for (const char* name : {"steps", "arena_bytes", "buffers"}) {
    const Json &before = old_engine["main"][name], &after = new_engine["main"][name];
    const auto number = [](const Json& value) { return value.is_array() ? Json(value.size()) : value; };
    rows[name] = {{"old", number(before)}, {"new", number(after)}};
  }
  rows["same"] = old_engine["main"] == new_engine["main"] && steps_of(old_engine) == steps_of(new_engine);
  return rows;
}

Json compare_interfaces(const Json& old_engine, const Json& new_engine) {
  Json differing = Json::array();
  for (const char* name :
       {"target", "levels", "inputs", "outputs", "states", "conditions", "metadata", "weights_form"}) {
    if (old_engine[name] != new_engine[name]) differing.push_back(name);
  }
  return differing;
}

void print_names(const char* what, const Json& names) {
  for (const Json& name : names) fmt::print("  {} {}\n", what, name.get<std::string>());
}

void print_row(const char* what, const Json& row) {
  fmt::print("{}\n  - {}\n  + {}\n", what, row["old"].get<std::string>(), row["new"].get<std::string>());
}

void print(const Json& json) {
  for (const Json& row : json["options"]) print_row("options", row);
  if (!json["first_difference_of_graphs"].is_null())
    print_row("graph, first difference", json["first_difference_of_graphs"]);
  for (const Json& name : json["differing"]) fmt::print("{} differ\n", name.get<std::string>());
  const Json &kernels = json["kernels"], &weights = json["weights"], &plan = json["plan"];
  fmt::print("kernels: {} the same, {} removed, {} added\n", kernels["same"].get<size_t>(),
             kernels["removed"].size(), kernels["added"].size());
  print_names("-", kernels["removed"]);
  print_names("+", kernels["added"]);
  fmt::print("plan: {}, {} -> {} steps, {} -> {} bytes of arena\n",
             plan["same"].get<bool>() ? "the same" : "another one", plan["steps"]["old"].get<size_t>(),
             plan["steps"]["new"].get<size_t>(), plan["arena_bytes"]["old"].get<int64_t>(),
             plan["arena_bytes"]["new"].get<int64_t>());
  fmt::print("weights: {} the same, {} with other values, {} of another type, {} removed, {} added\n",
             weights["same"].get<size_t>(), weights["changed"].size(), weights["retyped"].size(),
             weights["removed"].size(), weights["added"].size());
  print_names("other values:", weights["changed"]);
  print_names("another type:", weights["retyped"]);
  print_names("-", weights["removed"]);
  print_names("+", weights["added"]);
}

}  // namespace

void diff(const DiffCommand& command) {
  const Json before = inspected(command.before), after = inspected(command.after);
  Json json = compare_keys(before, after);
  json["identical"] = before["identity"] == after["identity"];
  json["differing"] = compare_interfaces(before, after);
  json["kernels"] = compare_kernels(before, after);
  json["plan"] = compare_plans(before, after);
  json["weights"] = compare_weights(before, after);
  if (command.json) {
    fmt::print("{}\n", json.dump(2));
  } else if (json["identical"].get<bool>()) {
    fmt::print("the engines are identical\n");
  } else {
    print(json);
  }
}

}  // namespace ingot::cli
