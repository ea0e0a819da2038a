// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "api/compiler/backends.h"
#include "cli/commands.h"
#include "cli/read_file.h"
#include "cli/standard_streams.h"
#include "compiler/options.h"
#include "compiler/target_pipeline.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "partition/partition.h"
#include "passes/check_disabled.h"
#include "support/error.h"

namespace ingot::cli {
namespace {

using Passes = std::vector<core::Pass>;

std::string read_source(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  return read_file(path);
}

// The default device of the first linked backend.
Passes pass_table(const std::string& device) {
  core::Target target = core::parse_options({{"device", device}}).target;
  const auto backends = core::api::backends();
  const core::Backend& backend =
      device.empty() ? *backends.front() : core::find_backend(backends, target.backend);
  target.backend = backend.name();
  target.device = backend.device(target.device);
  return core::pipeline_for(backend, target);
}

// Once of each pass, though it may run several times.
void print_rules(const core::Pass& pass, std::set<std::string_view>& printed) {
  if (!printed.insert(pass.name).second) return;
  for (const std::string_view rule : pass.rules) fmt::print("  {}.{}\n", pass.name, rule);
}

void list_passes(const Passes& table, bool json) {
  nlohmann::json rows = nlohmann::json::array();
  std::set<std::string_view> printed;
  for (const core::Pass& pass : table) {
    rows.push_back({{"name", pass.name},
                    {"stage", core::name(pass.stage)},
                    {"level", pass.minimum_level},
                    {"changes_rounding", pass.changes_rounding},
                    {"nodes", std::holds_alternative<core::RewritePass>(pass.run)},
                    {"rules", pass.rules},
                    {"why", pass.why}});
    if (!json)
      fmt::print("{:36} {:8} level {}  {}\n", pass.name, core::name(pass.stage), pass.minimum_level,
                 pass.why);
    if (!json) print_rules(pass, printed);
  }
  if (json) fmt::print("{}\n", rows.dump(2));
}

const core::Pass& find_row(const Passes& table, const std::string& name) {
  if (const core::Pass* pass = core::find_pass(table, name)) return *pass;
  std::vector<std::string> names;
  for (const core::Pass& pass : table) names.emplace_back(pass.name);
  throw CommandError(
      fmt::format("there is no pass '{}'{}; `ingot opt --list` lists all", name, suggest(name, names)), 2);
}

// The named passes; without names all, but without a device only those that do not depend on one.
core::Split run_passes(core::Graph graph, const OptCommand& command) {
  const Passes table = pass_table(command.device);
  core::PassOptions options;
  options.disabled = command.disabled;
  core::PassRunner runner(table, options);
  core::Split split{core::Graph("init"), std::move(graph)};
  for (const std::string& name : command.passes) split = runner.run(find_row(table, name), std::move(split));
  if (!command.passes.empty()) return split;
  for (const core::Pass& pass : table) {
    if (!command.device.empty() || pass.stage == core::Stage::kSimplify)
      split = runner.run(pass, std::move(split));
  }
  return split;
}

// `init` only where `hoist` moved something there.
void print(const core::Split& split, bool json) {
  const bool has_init = !split.init.nodes().empty();
  const std::string init = has_init ? core::to_string(split.init) : "", main = core::to_string(split.main);
  if (!json) return fmt::print("{}{}", init, main);
  nlohmann::json graphs{{"graph", main}};
  if (has_init) graphs["init"] = init;
  fmt::print("{}\n", graphs.dump(2));
}

}  // namespace

void optimize(const OptCommand& command) {
  try {
    if (command.list) return list_passes(pass_table(command.device), command.json);
    if (command.file.empty()) throw CommandError("opt requires a file, or - for standard input", 2);
    core::Graph graph = core::parse_graph(read_source(command.file), &core::ops::find_op);
    for (const std::string& entry : core::entries_without_node(graph, command.disabled))
      print_note(fmt::format("disable_passes: the graph has no node for \"{}\"\n", entry));
    print(run_passes(std::move(graph), command), command.json);
  } catch (const core::Error& error) {
    throw CommandError(error.what());
  }
}

}  // namespace ingot::cli
