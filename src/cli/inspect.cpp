// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"

namespace ingot::cli {
namespace {

// Every section of the JSON as "key: value" lines, nested ones indented.
void print_lines(const nlohmann::json& value, int indent) {
  const std::string space(static_cast<size_t>(indent), ' ');
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      if (item.is_primitive()) {
        fmt::print("{}{}: {}\n", space, key, item.is_string() ? item.get<std::string>() : item.dump());
      } else {
        fmt::print("{}{}:\n", space, key);
        print_lines(item, indent + 2);
      }
    }
  } else if (value.is_array()) {
    for (const auto& item : value)
      fmt::print("{}- {}\n", space, item.is_string() ? item.get<std::string>() : item.dump());
  }
}

}  // namespace

void inspect(const InspectCommand& command) {
  ingot_text* text = nullptr;
  if (command.file.ends_with(".pt2")) {
    check(ingot_inspect_pt2(command.file.c_str(), &text));
    const std::string program = take_text(text);
    fmt::print("{}\n", command.json ? nlohmann::json{{"program", program}}.dump(2) : program);
    return;
  }
  check(ingot_inspect_file(command.file.c_str(), &text));
  const std::string json = take_text(text);
  if (command.json) {
    fmt::print("{}\n", json);
  } else {
    print_lines(nlohmann::ordered_json::parse(json), 0);
  }
}

void verify(const InspectCommand& command) {
  check(ingot_verify_file(command.file.c_str()));
  if (command.json) {
    fmt::print("{}\n", nlohmann::json{{"file", command.file}, {"valid", true}}.dump());
  } else {
    fmt::print("{}: every byte is as it was sealed\n", command.file);
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
