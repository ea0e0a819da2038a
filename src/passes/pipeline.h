// SPDX-License-Identifier: Apache-2.0
// The order of the passes for every target, and the one place that runs a pass.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/storage_rules.h"

namespace ingot::core {

struct PassOptions {
  std::vector<std::string> disabled;  // names; UserError INGOT-U004 names the nearest pass if one is unknown
  std::string stop_after;     // the last pass that runs; the rest is skipped as far as the target allows
  int64_t bisect_limit = -1;  // only the first so many pass runs take place; -1: all
  int level = 3;              // passes above this optimization level do not run
  bool strict = false;        // no pass that changes roundings
  bool verify = true;         // after every pass that changed the graph
};

using GraphPass = std::function<Graph(Graph)>;
using GraphDump = std::function<void(std::string_view pass, const Graph& graph)>;

// One row of the pipeline: `why` says why the pass stands where it stands.
struct PassRow {
  std::string_view name;
  Graph (*run)(Graph graph);
  int minimum_level;
  bool changes_rounding;  // does not run under strict numerics
  std::string_view why;
};
std::span<const PassRow> pipeline();              // a pass may stand in it twice
const PassRow* find_pass(std::string_view name);  // null if there is none

// Skips by name, level, stop-after and bisect limit; verifies, times, and dumps a graph that changed.
class PassRunner {
 public:
  explicit PassRunner(const PassOptions& options, GraphDump dump = nullptr);

  Graph run(std::string_view name, Graph graph, const GraphPass& pass, int minimum_level = 0,
            bool changes_rounding = false, OutputLayouts outputs = OutputLayouts::kRowMajor);
  // Checks what a step beside the passes made: the importer, hoisting.
  void check(std::string_view step, const Graph& graph,
             OutputLayouts outputs = OutputLayouts::kRowMajor) const;

  struct Timing {
    std::string name;
    double seconds;
    bool changed;
  };
  const std::vector<Timing>& timings() const { return timings_; }

 private:
  bool skips(std::string_view name, int minimum_level, bool changes_rounding) const;

  PassOptions options_;
  GraphDump dump_;
  std::vector<Timing> timings_;
  int64_t runs_ = 0;
  bool stopped_ = false;
};

// All rows of pipeline(), in order.
Graph run_pipeline(Graph graph, PassRunner& runner);

}  // namespace ingot::core
