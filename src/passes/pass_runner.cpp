// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_runner.h"

#include <algorithm>
#include <chrono>

#include <fmt/core.h>

#include "ir/verify.h"
#include "passes/pipeline.h"
#include "support/error.h"
#include "support/text.h"

namespace ingot::core {
namespace {

void check_name(std::span<const Pass> table, const std::string& name) {
  if (name.empty() || find_pass(table, name) != nullptr) return;
  std::vector<std::string_view> known;
  for (const Pass& pass : table) known.push_back(pass.name);
  const std::string_view nearest = nearest_name(name, known);
  throw UserError(
      "INGOT-U004", fmt::format("there is no pass \"{}\"", name),
      nearest.empty() ? "`ingot opt --list` lists all" : fmt::format("the nearest is \"{}\"", nearest));
}

// Changes that a graph's revision does not count: layouts are written into the types.
uint64_t layouts_of(const Graph& graph) {
  uint64_t sum = 0;
  for (const auto& node : graph.nodes()) {
    for (const Value* result : node->results) {
      for (const LayoutAxis& axis : result->type.layout.axes)
        sum =
            (sum ^ static_cast<uint64_t>(axis.dim + axis.divisor * 31 + axis.modulus * 961)) * 0x100000001B3u;
      sum = sum * 31 + 1;
    }
  }
  return sum;
}

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

PassRunner::PassRunner(std::vector<Pass> table, const PassOptions& options, GraphDump dump)
    : table_(std::move(table)), options_(options), dump_(std::move(dump)) {
  for (const std::string& name : options_.disabled) check_name(table_, name);
  check_name(table_, options_.stop_after);
}

bool PassRunner::skips(const Pass& pass) const {
  if (stopped_ || pass.minimum_level > options_.level || (pass.changes_rounding && options_.strict))
    return true;
  if (std::ranges::find(options_.disabled, pass.name) != options_.disabled.end()) return true;
  return options_.bisect_limit && runs_ >= *options_.bisect_limit;
}

void PassRunner::count(const Pass& pass, double seconds, bool changed) {
  ++runs_;
  timings_.push_back({std::string(pass.name), seconds, changed});
}

Graph PassRunner::run(const Pass& pass, const GraphPass& rewrite, Graph graph, OutputLayouts outputs) {
  if (skips(pass)) return graph;
  const uint64_t before = graph.revision(), layouts = layouts_of(graph);
  const Stopwatch stopwatch;
  graph = rewrite(std::move(graph));
  const bool changed = graph.revision() != before || layouts_of(graph) != layouts;
  count(pass, stopwatch.seconds(), changed);
  if (changed) check(pass.name, graph, outputs);
  if (changed && dump_) dump_(pass.name, graph);
  return graph;
}

Split PassRunner::run(const Pass& pass, const SplitPass& divide, Graph graph) {
  if (skips(pass)) return {Graph("init"), std::move(graph)};
  const Stopwatch stopwatch;
  Split split = divide(std::move(graph));
  const bool changed = !split.init.nodes().empty();
  count(pass, stopwatch.seconds(), changed);
  check(pass.name, split.init, OutputLayouts::kAny);
  check(pass.name, split.main);
  if (changed && dump_) dump_(pass.name, split.init);
  if (changed && dump_) dump_(pass.name, split.main);
  return split;
}

Split PassRunner::run(const Pass& pass, Split program) {
  if (const auto* divide = std::get_if<SplitPass>(&pass.run)) {
    program = run(pass, *divide, std::move(program.main));
  } else {
    const auto& rewrite = std::get<GraphPass>(pass.run);
    if (pass.stage > Stage::kHoist)
      program.init = run(pass, rewrite, std::move(program.init), OutputLayouts::kAny);
    program.main = run(pass, rewrite, std::move(program.main), OutputLayouts::kRowMajor);
  }
  stopped_ |= pass.name == options_.stop_after;
  return program;
}

Split PassRunner::run(Stage stage, Split program) {
  for (const Pass& pass : table_) {
    if (pass.stage == stage) program = run(pass, std::move(program));
  }
  return program;
}

void PassRunner::check(std::string_view step, const Graph& graph, OutputLayouts outputs) const {
  if (options_.verify) verify(graph, step, outputs);
}

}  // namespace ingot::core
