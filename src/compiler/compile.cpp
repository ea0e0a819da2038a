// SPDX-License-Identifier: Apache-2.0
#include "compiler/compile.h"

#include <fmt/core.h>

#include "compiler/assemble.h"
#include "compiler/key.h"
#include "compiler/lower.h"
#include "compiler/profile.h"
#include "compiler/verify_kernels.h"
#include "engine/validate_engine.h"
#include "importers/aten/import.h"
#include "ops/bounds.h"
#include "partition/partition.h"
#include "passes/hoist.h"
#include "passes/target_passes.h"
#include "support/error.h"
#include "support/hash.h"

namespace ingot::core {
namespace {

FuseRules fuse_rules(const Backend& backend, const Target& target) {
  return {
      .may_take_consumer = [&](const Node& root,
                               const Node& node) { return backend.may_fuse_consumer(root, node, target); },
      .may_take_producer = [&](const Node& root,
                               const Node& node) { return backend.may_fuse_producer(root, node, target); }};
}

constexpr int kFuseLevel = 2;
constexpr int kLayoutLevel = 3;

// Kernels of equal keys are the same code.
void set_keys(std::vector<Image>& images, const ImageTable& table, const Backend& backend,
              const Target& target) {
  for (const auto& [text, id] : table.ids) {
    images[id].key = digest(as_bytes(
        fmt::format("code by {}\nfor {}:{}\n{}", backend.generator(), target.backend, target.device, text)));
  }
}

// Brings operations into the forms that the target has fast code for.
Graph adapt(Graph graph, const Backend& backend, const CompileOptions& options, PassRunner& runner) {
  const Target& target = options.target;
  const ComputeDTypeRule dtype = [&](const Node& node) { return backend.compute_dtype(node, target); };
  const TransposedConvolutionRule convolutions = [&](const Node& node) {
    return backend.prefers_convolutions(node, target);
  };
  const auto widen = [&](Graph g) { return widen_contractions(std::move(g), dtype); };
  const auto expand = [&](Graph g) { return expand_transposed_convolutions(std::move(g), convolutions); };
  graph = runner.run("widen_contractions", std::move(graph), widen, kLayoutLevel);
  return runner.run("expand_transposed_convolutions", std::move(graph), expand, kLayoutLevel);
}

// Passes for one target: where values lie, what runs once a checkpoint, and what becomes one kernel.
Split specialize(Graph graph, const Backend& backend, const CompileOptions& options, PassRunner& runner) {
  const Target& target = options.target;
  const ConvolutionRule prefers_winograd = [&](const Node& node) {
    return backend.prefers_winograd(node, target);
  };
  const LayoutRule layouts = [&](const Node& node) { return backend.layouts(node, target); };
  const FuseRules rules = fuse_rules(backend, target);
  const auto winograd = [&](Graph g) { return use_winograd(std::move(g), prefers_winograd); };
  const auto assign = [&](Graph g) { return assign_layouts(std::move(g), layouts); };
  const auto fuse_all = [&](Graph g) { return fuse(std::move(g), rules); };
  graph = runner.run("use_winograd", std::move(graph), winograd, kLayoutLevel, /*changes_rounding=*/true);
  graph = runner.run("assign_layouts", std::move(graph), assign, kLayoutLevel);
  Split split = hoist(std::move(graph));
  runner.check("hoist", split.init, OutputLayouts::kAny);
  runner.check("hoist", split.main);
  split.init = runner.run("fuse", std::move(split.init), fuse_all, kFuseLevel, /*changes_rounding=*/false,
                          OutputLayouts::kAny);
  split.main = runner.run("fuse", std::move(split.main), fuse_all, kFuseLevel);
  return split;
}

size_t verify_all(const LoweredPrograms& lowered, const std::vector<Image>& images,
                  const SymbolTable& symbols, const CompileHooks& hooks, const Target& target) {
  const KernelRunner runner = hooks.runner ? hooks.runner(target.backend) : KernelRunner{};
  std::set<ImageId> verified;
  if (runner.executor == nullptr) return 0;
  for (const auto* steps : {&lowered.init, &lowered.main})
    verify_kernels(*steps, images, symbols, runner, verified);
  return verified.size();
}

// What was compiled is held to the rules of engine files; whatever breaks them is our fault, not the file's.
void check_engine(const EngineData& engine) {
  try {
    validate_engine(engine);
  } catch (const UserError& error) {
    throw InternalError("the compiled engine is broken: " + error.details().message);
  }
}

// Bounds without a symbol fail in each call, or in none.
void refuse_what_no_size_meets(std::span<const SizeCheck> checks) {
  for (const SizeCheck& check : checks) {
    const bool is_fixed = check.kind == CheckKind::kBounds && symbols_of(check.condition).empty();
    if (is_fixed && !evaluate(check.condition, {})) fail_check(check, {}, {});
  }
}

}  // namespace

std::shared_ptr<EngineData> compile(const aten::Program& program, const CompileOptions& options,
                                    std::span<const Backend* const> backends, const CompileHooks& hooks,
                                    BuildReport* report) {
  return compile_model(
      program, [&] { return aten::import_program(program); }, options, backends, hooks, report);
}

std::shared_ptr<EngineData> compile_model(const aten::Program& program,
                                          const std::function<aten::Imported()>& import,
                                          const CompileOptions& options,
                                          std::span<const Backend* const> backends, const CompileHooks& hooks,
                                          BuildReport* report) {
  BuildReport unread;
  BuildReport& filled = report != nullptr ? *report : unread;
  Phases own("prepare");
  Phases& phases = hooks.phases != nullptr ? *hooks.phases : own;
  PassRunner runner(options.passes, hooks.dump);
  const Target& target = options.target;
  const Backend& backend = find_backend(backends, target.backend);

  phases.begin("import");
  aten::Imported model = import();
  apply_profiles(model.graph, options.profiles);
  model.graph.erase_dead_nodes();
  complete_checks(model.graph, model.checks);
  refuse_what_no_size_meets(model.checks);
  runner.check("import", model.graph);
  std::string key = engine_key(program, model, backend, options);

  phases.begin("simplify");
  Graph graph = run_pipeline(std::move(model.graph), runner);
  phases.begin("adapt");
  graph = adapt(std::move(graph), backend, options, runner);
  filled.slow = require_support(graph, typical_sizes(graph.symbols), backend, target, invariant_nodes(graph));
  phases.begin("specialize");
  const Split split = specialize(std::move(graph), backend, options, runner);

  phases.begin("lower");
  ImageTable table;
  LoweredPrograms lowered{lower_graph(split.init, backend, target, split.main.symbols, table),
                          lower_graph(split.main, backend, target, split.main.symbols, table)};
  phases.begin("compile kernels");
  const auto report_kernels = [&](size_t done, size_t total) { phases.report(done, total); };
  std::vector<Image> images = compile_images(table, options.threads, report_kernels);
  set_keys(images, table, backend, target);
  if (options.verify_kernels) {
    phases.begin("verify kernels");
    filled.verified_kernels = verify_all(lowered, images, split.main.symbols, hooks, target);
  }

  phases.begin("plan");
  auto engine = assemble(
      {program, model, split, std::move(lowered), std::move(images), target, backend.place(), std::move(key)},
      filled);
  check_engine(*engine);
  return engine;
}

std::vector<SlowNode> find_slow(const aten::Program& program, const CompileOptions& options,
                                std::span<const Backend* const> backends) {
  PassRunner runner(options.passes);
  const Backend& backend = find_backend(backends, options.target.backend);
  aten::Imported model = aten::import_program(program);
  apply_profiles(model.graph, options.profiles);
  Graph graph = adapt(run_pipeline(std::move(model.graph), runner), backend, options, runner);
  return require_support(graph, typical_sizes(graph.symbols), backend, options.target,
                         invariant_nodes(graph));
}

}  // namespace ingot::core
