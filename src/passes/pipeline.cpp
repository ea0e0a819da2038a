// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline.h"

#include <algorithm>
#include <iterator>

#include "passes/hoist.h"
#include "passes/passes.h"

namespace ingot::core {
namespace {

std::vector<Pass> neutral_passes(const TargetRules& rules) {
  return {
      {.name = "eliminate_dead_code", .run = eliminate_dead_code, .why = "front ends leave unused nodes"},
      {.name = "simplify",
       .run = simplify,
       .minimum_level = 1,
       .rules = rules_of_simplify(),
       .why = "brings different formulations of models into one form"},
      {.name = "fold_constants",
       .run = fold_constants,
       .minimum_level = 1,
       .why = "constants that rules look for may be computed"},
      {.name = "recognize_compositions",
       .run = recognize_compositions,
       .minimum_level = 1,
       .changes_rounding = true,
       .rules = rules_of_recognize_compositions(),
       .why = "after simplify: one form of each is enough"},
      {.name = "fold_batch_norm",
       .run = fold_batch_norm,
       .minimum_level = 1,
       .changes_rounding = true,
       .why = "before decompose, which replaces batch_norm"},
      {.name = "slice_early", .run = slice_early, .minimum_level = 1, .why = "composites keep rows apart"},
      {.name = "decompose",
       .run = decompose,
       .why = "backends only support operators without a decomposition"},
      {.name = "multiply_quantized",
       .run =
           [rule = rules.quantized](Graph graph, Rewrites& rewrites) {
             return rule ? multiply_quantized(std::move(graph), rule, rewrites) : std::move(graph);
           },
       .minimum_level = 3,
       .changes_rounding = true,
       .why = "before lower_precision: products of integers have no operand of f32"},
      {.name = "lower_precision",
       .run =
           [rule = rules.precision](Graph graph, Rewrites& rewrites) {
             return rule ? lower_precision(std::move(graph), rule, rewrites) : std::move(graph);
           },
       .why = "on the operators that backends see; simplify removes conversions that cancel"},
      {.name = "simplify",
       .run = simplify,
       .minimum_level = 1,
       .rules = rules_of_simplify(),
       .why = "decompositions do not consider their neighbours"},
      {.name = "fold_constants",
       .run = fold_constants,
       .minimum_level = 1,
       .why = "... and compute with constants"},
      {.name = "reinplace_state",
       .run = reinplace_state,
       .minimum_level = 1,
       .why = "when all reads of state are known"},
      {.name = "eliminate_common_subexpressions",
       .run = eliminate_common_subexpressions,
       .minimum_level = 1,
       .why = "once equal things have one form, and before anything is grouped"},
      {.name = "eliminate_dead_code",
       .run = eliminate_dead_code,
       .why = "the last rewriting leaves dead nodes"},
      {.name = "assign_layouts",
       .stage = Stage::kLayout,
       .run = [rule = rules.layouts](
                  Graph graph,
                  Rewrites& rewrites) { return assign_layouts(std::move(graph), rule, rewrites); },
       .minimum_level = 3,
       .why = "before hoist: packing a weight is work for the init program"},
      {.name = "hoist",
       .stage = Stage::kHoist,
       .run = hoist,
       .why = "before fuse: no region may hold parts of both programs"},
      {.name = "fuse",
       .stage = Stage::kFuse,
       .run = [rules = rules.fuse](Graph graph,
                                   Rewrites& rewrites) { return fuse(std::move(graph), rules, rewrites); },
       .minimum_level = 2,
       .why = "last: whatever nodes remain become regions"},
  };
}

}  // namespace

std::string_view name(Stage stage) {
  constexpr std::string_view kNames[] = {"simplify", "adapt", "layout", "hoist", "fuse", "join"};
  return kNames[static_cast<size_t>(stage)];
}

std::vector<Pass> pipeline(const TargetRules& rules, std::vector<Pass> of_backend) {
  std::vector<Pass> table = std::move(of_backend);
  std::ranges::move(neutral_passes(rules), std::back_inserter(table));
  std::ranges::stable_sort(table, {}, &Pass::stage);
  return table;
}

const Pass* find_pass(std::span<const Pass> table, std::string_view name) {
  const auto pass = std::ranges::find(table, name, &Pass::name);
  return pass == table.end() ? nullptr : &*pass;
}

}  // namespace ingot::core
