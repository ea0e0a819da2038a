// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "support/error.h"

namespace ingot::cli {
namespace {

std::string read_source(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream stream(path);
  if (!stream) throw CommandError(fmt::format("cannot open {}", path));
  return {std::istreambuf_iterator<char>(stream), {}};
}

void list_passes(bool json) {
  nlohmann::json rows = nlohmann::json::array();
  for (const core::PassRow& row : core::pipeline()) {
    rows.push_back({{"name", row.name}, {"level", row.minimum_level}, {"why", row.why}});
    if (!json) fmt::print("{:36} level {}  {}\n", row.name, row.minimum_level, row.why);
  }
  if (json) fmt::print("{}\n", rows.dump(2));
}

core::Graph run_named(core::Graph graph, const std::vector<std::string>& names, core::PassRunner& runner) {
  for (const std::string& name : names) {
    const core::PassRow* row = core::find_pass(name);
    if (row == nullptr)
      throw CommandError(fmt::format("there is no pass \"{}\"; see ingot opt --list", name), 2);
    graph = runner.run(row->name, std::move(graph), row->run);
  }
  return graph;
}

}  // namespace

void optimize(const OptCommand& command) {
  if (command.list) return list_passes(command.json);
  if (command.file.empty()) throw CommandError("opt needs a file, or - for standard input", 2);
  try {
    core::PassRunner runner(core::PassOptions{});
    core::Graph graph = core::parse_graph(read_source(command.file), &core::ops::find_op);
    graph = command.passes.empty() ? core::run_pipeline(std::move(graph), runner)
                                   : run_named(std::move(graph), command.passes, runner);
    const std::string text = core::to_string(graph);
    fmt::print("{}\n", command.json ? nlohmann::json{{"graph", text}}.dump(2) : text);
  } catch (const core::Error& error) {
    throw CommandError(error.what());
  }
}

}  // namespace ingot::cli
