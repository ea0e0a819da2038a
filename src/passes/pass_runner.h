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

struct PassOptions {
  std::vector<std::string> disabled;  // names; UserError INGOT-U004 names the nearest pass if one is unknown
  std::string stop_after;  // the last pass to run; later ones are skipped as far as the target allows
  std::optional<int64_t> bisect_limit;  // number of pass runs to perform; none: all
  int level = 3;                        // passes above this optimization level do not run
  bool strict = false;                  // skips passes that change rounding
  bool verify = true;                   // after every pass that changed the graph
};

using GraphDump = std::function<void(std::string_view pass, const Graph& graph)>;

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
  };
  const std::vector<Timing>& timings() const { return timings_; }

 private:
  bool skips(const Pass& pass) const;
  Graph run(const Pass& pass, const GraphPass& rewrite, Graph graph, OutputLayouts outputs);
  Split run(const Pass& pass, const SplitPass& divide, Graph graph);
  void count(const Pass& pass, double seconds, bool changed);

  std::vector<Pass> table_;
  PassOptions options_;
  GraphDump dump_;
  std::vector<Timing> timings_;
  int64_t runs_ = 0;
  bool stopped_ = false;
};

}  // namespace ingot::core
