// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_runner.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "ir/verify.h"
#include "passes/check_disabled.h"
#include "support/error.h"

namespace ingot::core {
namespace {

// Changes that a graph's revision does not count: layouts are written into the types.
uint64_t layouts_of(const Graph& graph) {
  uint64_t sum = 0;
  for (const auto& node : graph.nodes()) {
    for (const auto& nested : node->graphs) sum = sum * 31 + layouts_of(*nested);
    for (const Value* result : node->results) {
      for (const LayoutAxis& axis : result->type.layout.axes)
        sum =
            (sum ^ static_cast<uint64_t>(axis.dim + axis.divisor * 31 + axis.modulus * 961)) * 0x100000001B3u;
      sum = sum * 31 + 1;
    }
  }
  return sum;
}

uint64_t revision_of(const Graph& graph) {
  uint64_t sum = graph.revision();
  for (const auto& node : graph.nodes()) {
    for (const auto& nested : node->graphs) sum += revision_of(*nested);
  }
  return sum;
}

size_t count_nodes(const Graph& graph) {
  size_t count = graph.nodes().size();
  for (const auto& node : graph.nodes()) {
    if (!node->op->traits.has(Trait::kControlFlow)) continue;
    for (const auto& nested : node->graphs) count += count_nodes(*nested);
  }
  return count;
}

// Runs the pass on the graphs of branches and loops first, each as a program of its own with the symbols of
// the outermost.
Graph apply(const Pass& pass, Graph graph, Rewrites& rewrites) {
  for (const auto& node : graph.nodes()) {
    if (!node->op->traits.has(Trait::kControlFlow)) continue;
    for (const auto& nested : node->graphs) {
      nested->symbols = graph.symbols;
      *nested = apply(pass, std::move(*nested), rewrites);
      nested->symbols.clear();
    }
  }
  if (const auto* rewrite = std::get_if<RewritePass>(&pass.run))
    return (*rewrite)(std::move(graph), rewrites);
  return std::get<GraphPass>(pass.run)(std::move(graph));
}

// An error of ours in the middle of a pass: which one it was, and what it changed last.
[[noreturn]] void fail_in(const Pass& pass, const Rewrites& rewrites, const InternalError& error) {
  std::string where = fmt::format("the pass \"{}\" failed", pass.name);
  if (!rewrites.made().empty()) {
    const Rewrite& last = rewrites.made().back();
    where += fmt::format("{}{}, at or after the node \"{}\"{}{}", last.rule.empty() ? "" : " by its rule ",
                         last.rule, last.node, last.source.empty() ? "" : " ", last.source);
  }
  throw InternalError(
      fmt::format("{}: {}; disable_passes={} avoids it", where, error.details().message, pass.name));
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
    : table_(std::move(table)),
      options_(options),
      disabled_(checked_disabled(table_, options.disabled)),
      dump_(std::move(dump)) {
  if (!options_.stop_after.empty()) check_pass_name(table_, options_.stop_after);
}

bool PassRunner::skips(const Pass& pass) const {
  if (stopped_ || pass.minimum_level > options_.level || (pass.changes_rounding && options_.strict))
    return true;
  const auto names_it = [&](const Disabled& entry) {
    return entry.is_whole_pass() && entry.pass == pass.name;
  };
  if (std::ranges::any_of(disabled_, names_it)) return true;
  if (!is_optional(pass) || !options_.bisect_limit || runs_ < options_.bisect_limit->runs) return false;
  return runs_ > options_.bisect_limit->runs || options_.bisect_limit->rewrites == 0;
}

Rewrites PassRunner::rewrites_of(const Pass& pass) const {
  const bool is_last = is_optional(pass) && options_.bisect_limit && runs_ == options_.bisect_limit->runs;
  return {pass.name, disabled_, is_last ? std::optional(options_.bisect_limit->rewrites) : std::nullopt,
          pass.only};
}

void PassRunner::count(const Pass& pass, Timing timing) {
  if (is_optional(pass)) ++runs_;
  timing.name = pass.name;
  timing.is_optional = is_optional(pass);
  timings_.push_back(std::move(timing));
}

Graph PassRunner::run(const Pass& pass, Graph graph, OutputLayouts outputs) {
  if (skips(pass)) return graph;
  const uint64_t before = revision_of(graph), layouts = layouts_of(graph);
  const size_t nodes_before = count_nodes(graph);
  const Stopwatch stopwatch;
  Rewrites rewrites = rewrites_of(pass);
  try {
    graph = apply(pass, std::move(graph), rewrites);
  } catch (const InternalError& error) {
    fail_in(pass, rewrites, error);
  }
  const bool changed = revision_of(graph) != before || layouts_of(graph) != layouts;
  count(pass, {.seconds = stopwatch.seconds(),
               .changed = changed,
               .rewrites = rewrites.made(),
               .program = graph.name,
               .nodes_before = nodes_before,
               .nodes_after = count_nodes(graph)});
  if (changed) check(pass.name, graph, outputs);
  if (changed && dump_) dump_(pass.name, graph);
  return graph;
}

Split PassRunner::run(const Pass& pass, const SplitPass& divide, Graph graph) {
  if (skips(pass)) return {Graph("init"), std::move(graph)};
  const size_t nodes_before = count_nodes(graph);
  const Stopwatch stopwatch;
  Split split = divide(std::move(graph));
  const bool changed = !split.init.nodes().empty();
  count(pass, {.seconds = stopwatch.seconds(),
               .changed = changed,
               .program = split.main.name,
               .nodes_before = nodes_before,
               .nodes_after = count_nodes(split.main)});
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
    if (pass.stage > Stage::kHoist) program.init = run(pass, std::move(program.init), OutputLayouts::kAny);
    program.main = run(pass, std::move(program.main), OutputLayouts::kRowMajor);
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
