// SPDX-License-Identifier: Apache-2.0
#include "compiler/model_graphs.h"

#include "compiler/canonical_graph.h"
#include "compiler/name_symbols.h"
#include "compiler/output_names.h"
#include "compiler/profile.h"
#include "compiler/split_for_passes.h"
#include "compiler/target_pipeline.h"
#include "ir/rename_symbols.h"
#include "partition/choose_sides.h"

namespace ingot::core {
namespace {

// A build's passes see the symbols of the canonical graph, and names that no call has made yet.
Split optimized(aten::Imported& model, const CanonicalGraph& canonical, const PassRunner& checked) {
  PassRunner runner = checked;
  name_symbols(model, canonical.symbols);
  Split split = split_for_passes(model.graph);
  for (const Stage stage :
       {Stage::kSimplify, Stage::kAdapt, Stage::kLayout, Stage::kHoist, Stage::kFuse, Stage::kJoin})
    split = runner.run(stage, std::move(split));
  return split;
}

void restore_symbols(Graph& graph, const SymbolTable& symbols, const CanonicalGraph& canonical) {
  std::map<std::string, Dim> names;
  for (const auto& [own, changed] : canonical.symbols) names.emplace(changed.symbol_name(), Dim::symbol(own));
  rename_symbols(graph, names);
  graph.symbols = symbols;
}

}  // namespace

ModelGraphs model_graphs(const aten::Program& program, const std::function<aten::Imported()>& import,
                         GraphStage stage, const CompileOptions& options,
                         std::span<const Backend* const> backends) {
  const EngineBackends chosen(backends, options.target);
  const PassRunner runner(pipeline_for(chosen), options.passes);
  ModelGraphs graphs{.split = {.init = Graph("init"), .main = Graph()}, .model = import(), .outputs = {}};
  aten::Imported& model = graphs.model;
  apply_profiles(model.graph.symbols, tensor_arguments(model), options.profiles);
  model.graph.erase_dead_nodes();
  set_named_sides(model.graph, chosen);
  runner.check("import", model.graph);
  graphs.outputs = output_names(program, model);
  if (stage == GraphStage::kImported) {
    graphs.split.main = std::move(model.graph);
    return graphs;
  }
  const CanonicalGraph canonical = canonicalize(model.graph);
  const SymbolTable symbols = model.graph.symbols;
  graphs.split = optimized(model, canonical, runner);
  restore_symbols(graphs.split.main, symbols, canonical);
  return graphs;
}

}  // namespace ingot::core
