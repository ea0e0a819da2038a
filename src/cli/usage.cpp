// SPDX-License-Identifier: Apache-2.0
#include "cli/usage.h"

#include <fmt/core.h>

#include <vector>

#include "cli/commands.h"

namespace ingot::cli {
namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

std::string describe_misuse(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> used = app.get_subcommands();
  const std::vector<std::string> extra = app.remaining(true);
  if (used.empty()) {
    if (extra.empty()) return "missing command; `ingot --help` lists all";
    return fmt::format("there is no command '{}'{}; `ingot --help` lists all", extra[0],
                       suggest(extra[0], command_names(app)));
  }
  const std::string help = fmt::format("`ingot {} --help` lists its arguments", used[0]->get_name());
  if (extra.empty()) return fmt::format("{}; {}", error.what(), help);
  const std::string word = extra[0].substr(0, extra[0].find('='));
  return fmt::format("{} takes no '{}'{}; {}", used[0]->get_name(), word,
                     word.starts_with("-") ? suggest(word, option_names(*used[0])) : "", help);
}

}  // namespace ingot::cli
