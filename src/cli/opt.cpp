// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/read_file.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "support/error.h"

namespace ingot::cli {
namespace {

std::string read_source(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  return read_file(path);
}

void list_passes(bool json) {
  nlohmann::json rows = nlohmann::json::array();
  for (const core::PassRow& row : core::pipeline()) {
    rows.push_back({{"name", row.name}, {"level", row.minimum_level}, {"why", row.why}});
    if (!json) fmt::print("{:36} level {}  {}\n", row.name, row.minimum_level, row.why);
  }
  if (json) fmt::print("{}\n", rows.dump(2));
}

const core::PassRow& find_row(const std::string& name) {
  if (const core::PassRow* row = core::find_pass(name)) return *row;
  std::vector<std::string> names;
  for (const core::PassRow& row : core::pipeline()) names.emplace_back(row.name);
  throw CommandError(
      fmt::format("there is no pass '{}'{}; `ingot opt --list` lists all", name, suggest(name, names)), 2);
}

core::Graph run_passes(core::Graph graph, const std::vector<const core::PassRow*>& rows) {
  core::PassRunner runner(core::PassOptions{});
  if (rows.empty()) return core::run_pipeline(std::move(graph), runner);
  for (const core::PassRow* row : rows) graph = runner.run(row->name, std::move(graph), row->run);
  return graph;
}

}  // namespace

void optimize(const OptCommand& command) {
  if (command.list) return list_passes(command.json);
  if (command.file.empty()) throw CommandError("opt needs a file, or - for standard input", 2);
  std::vector<const core::PassRow*> rows;
  for (const std::string& name : command.passes) rows.push_back(&find_row(name));
  try {
    core::Graph graph = core::parse_graph(read_source(command.file), &core::ops::find_op);
    const std::string text = core::to_string(run_passes(std::move(graph), rows));
    fmt::print("{}", command.json ? nlohmann::json{{"graph", text}}.dump(2) + "\n" : text);
  } catch (const core::Error& error) {
    throw CommandError(error.what());
  }
}

}  // namespace ingot::cli
