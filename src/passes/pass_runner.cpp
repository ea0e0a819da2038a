// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include <fmt/core.h>

#include "ir/verify.h"
#include "passes/pipeline.h"
#include "support/error.h"
#include "support/text.h"

namespace ingot::core {
namespace {

// Passes that ask the target: they run behind the pipeline, through the same runner.
constexpr std::string_view kTargetPasses[] = {"use_winograd", "assign_layouts", "fuse"};

void check_name(const std::string& name) {
  std::vector<std::string_view> known(std::begin(kTargetPasses), std::end(kTargetPasses));
  for (const PassRow& row : pipeline()) known.push_back(row.name);
  if (name.empty() || std::ranges::find(known, name) != known.end()) return;
  const std::string_view nearest = nearest_name(name, known);
  throw UserError("INGOT-U004", fmt::format("there is no pass \"{}\"", name),
                  nearest.empty() ? "`ingot opt --list` lists those that every target runs"
                                  : fmt::format("the nearest is \"{}\"", nearest));
}

// What a graph's revision does not count: layouts are written into the types.
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

}  // namespace

PassRunner::PassRunner(const PassOptions& options, GraphDump dump)
    : options_(options), dump_(std::move(dump)) {
  for (const std::string& name : options_.disabled) check_name(name);
  check_name(options_.stop_after);
}

bool PassRunner::skips(std::string_view name, int minimum_level, bool changes_rounding) const {
  if (stopped_ || minimum_level > options_.level || (changes_rounding && options_.strict)) return true;
  if (std::ranges::find(options_.disabled, name) != options_.disabled.end()) return true;
  return options_.bisect_limit >= 0 && runs_ >= options_.bisect_limit;
}

Graph PassRunner::run(std::string_view name, Graph graph, const GraphPass& pass, int minimum_level,
                      bool changes_rounding, OutputLayouts outputs) {
  if (!skips(name, minimum_level, changes_rounding)) {
    const uint64_t before = graph.revision(), layouts = layouts_of(graph);
    const auto start = std::chrono::steady_clock::now();
    graph = pass(std::move(graph));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const bool changed = graph.revision() != before || layouts_of(graph) != layouts;
    ++runs_;
    timings_.push_back({std::string(name), seconds.count(), changed});
    if (changed) check(name, graph, outputs);
    if (changed && dump_) dump_(name, graph);
  }
  stopped_ |= name == options_.stop_after;
  return graph;
}

void PassRunner::check(std::string_view step, const Graph& graph, OutputLayouts outputs) const {
  if (options_.verify) verify(graph, step, outputs);
}

Graph run_pipeline(Graph graph, PassRunner& runner) {
  for (const PassRow& row : pipeline()) {
    graph = runner.run(row.name, std::move(graph), row.run, row.minimum_level, row.changes_rounding);
  }
  return graph;
}

}  // namespace ingot::core
