// SPDX-License-Identifier: Apache-2.0
// A pass as a row of the pass table (pipeline.h). Backends contribute rows of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/graph.h"
#include "passes/rewrites.h"

namespace ingot::core {

// The order of the table. In each stage a backend's own passes run first, in the order in which it returns
// them.
enum class Stage : uint8_t {
  kSimplify,  // the same for every target
  kAdapt,     // rewrites operations into forms that the target has code for, before it judges each node
  kLayout,    // chooses forms and layouts of the remaining nodes
  kHoist,     // splits off the work that runs once per checkpoint
  kFuse,      // on both graphs: nodes become regions
  kJoin,      // on both graphs: regions become larger ones
};
std::string_view name(Stage stage);  // "simplify"

// A model is one graph until `hoist` splits it by what values depend on. `init` has no inputs and no symbols:
// it runs once per checkpoint. Its output k is the `weight` node of `main` with init_output == k. Weights
// that main uses unchanged stay `weight` nodes of main.
struct Split {
  Graph init;
  Graph main;
};

using GraphPass = std::function<Graph(Graph)>;               // runs for all nodes, or not at all
using RewritePass = std::function<Graph(Graph, Rewrites&)>;  // asks before each change
using SplitPass = std::function<Split(Graph)>;

struct Pass {
  std::string_view name;
  Stage stage = Stage::kSimplify;
  std::variant<GraphPass, RewritePass, SplitPass> run;
  int minimum_level = 0;                     // does not run below this optimization level
  bool changes_rounding = false;             // does not run under strict numerics
  std::vector<std::string_view> rules = {};  // that disable_passes can name, of a RewritePass
  std::string_view why;                      // the reason for its position
  NodeFilter only = {};                      // the nodes that it is for; null: all
};

}  // namespace ingot::core
