// SPDX-License-Identifier: Apache-2.0
// The only code that runs passes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/storage_rules.h"
#include "passes/pass.h"

namespace ingot::core {

// How far the optional passes go: `runs` of them whole, and of the next one the first `rewrites` changes.
struct BisectLimit {
  int64_t runs = 0, rewrites = 0;
};

struct PassOptions {
  std::vector<std::string> disabled;  // PASS[.RULE][@NODES]; what is unknown or cannot be is a UserError
  std::string stop_after;  // the last pass to run; later ones are skipped as far as the target allows
  std::optional<BisectLimit> bisect_limit;  // none: everything runs
  int level = 3;                            // passes above this optimization level do not run
  bool strict = false;                      // skips passes that change rounding
  bool verify = true;                       // after every pass that changed the graph
};

using GraphDump = std::function<void(std::string_view pass, const Graph& graph)>;

// Passes of level 0 are what every build needs.
inline bool is_optional(const Pass& pass) { return pass.minimum_level > 0; }

// Skips by name, level, stop-after and bisect limit; verifies, times, and dumps a graph that changed.
class PassRunner {
 public:
  PassRunner(std::vector<Pass> table, const PassOptions& options, GraphDump dump = nullptr);

  // All passes of a stage, in the order of the table. After `hoist` a pass runs on both graphs.
  Split run(Stage stage, Split program);
  Split run(const Pass& pass, Split program);
  // Verifies a graph from outside of the passes: from the importer.
  void check(std::string_view step, const Graph& graph,
             OutputLayouts outputs = OutputLayouts::kRowMajor) const;

  struct Timing {  // of one run of a pass
    std::string name;
    double seconds;
    bool changed;
    bool is_optional = false;       // counted by BisectLimit::runs
    std::vector<Rewrite> rewrites;  // in the order in which they were made; empty for passes that do not tell
    std::string program;            // "main" or, after `hoist`, "init"
    size_t nodes_before = 0, nodes_after = 0;  // of it, with branches and loop bodies; a region counts as one
  };
  const std::vector<Timing>& timings() const { return timings_; }

 private:
  bool skips(const Pass& pass) const;
  Rewrites rewrites_of(const Pass& pass) const;
  Graph run(const Pass& pass, Graph graph, OutputLayouts outputs);
  Split run(const Pass& pass, const SplitPass& divide, Graph graph);
  void count(const Pass& pass, Timing timing);

  std::vector<Pass> table_;
  PassOptions options_;
  std::vector<Disabled> disabled_;
  GraphDump dump_;
  std::vector<Timing> timings_;
  int64_t runs_ = 0;
  bool stopped_ = false;
};

}  // namespace ingot::core
