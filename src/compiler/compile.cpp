// SPDX-License-Identifier: Apache-2.0
#include "compiler/compile.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/assemble.h"
#include "compiler/engine_entry.h"
#include "compiler/key.h"
#include "compiler/lower.h"
#include "compiler/name_symbols.h"
#include "compiler/only_rank.h"
#include "compiler/profile.h"
#include "compiler/split_for_passes.h"
#include "compiler/tactic_table.h"
#include "compiler/target_pipeline.h"
#include "compiler/tune.h"
#include "compiler/verify_kernels.h"
#include "engine/group_uses.h"
#include "engine/validate_engine.h"
#include "importers/aten/import.h"
#include "ir/constant.h"
#include "ops/bounds.h"
#include "partition/partition.h"
#include "passes/check_disabled.h"
#include "passes/hoist.h"
#include "support/error.h"

namespace ingot::core {
namespace {

// What the stages of one build share.
struct Build {
  const NamedModel& model;
  const EngineBackends& backends;
  const CompileOptions& options;
  const CompileHooks& hooks;
  const KnownTactics& known;
  Phases& phases;
  BuildReport& report;
};

std::vector<SlowNode> slow_nodes(const Graph& graph, const EngineBackends& backends) {
  return require_support(graph, typical_sizes(graph.symbols), backends, invariant_nodes(graph));
}

// On the GPU that the caller chose; null: this machine has none.
const Executor* find_executor(const CompileHooks& hooks, const Target& target) {
  const Executor* found = hooks.host != nullptr ? hooks.host->find_executor(target.backend) : nullptr;
  return found == nullptr ? nullptr : &found->on_device(hooks.gpu);
}

size_t verify_all(const LoweredPrograms& lowered, const std::vector<Image>& images,
                  const SymbolTable& symbols, const Build& build) {
  std::set<ImageId> verified;
  if (build.hooks.host == nullptr) return 0;
  for (const BackendTarget* on : {&build.backends.own(), build.backends.host()}) {
    if (on == nullptr) continue;
    const KernelRunner runner{find_executor(build.hooks, on->target), &build.hooks.host->pool()};
    if (runner.executor == nullptr) continue;
    for (const auto* steps : {&lowered.init, &lowered.main})
      verify_kernels(*steps, images, symbols, runner, verified);
  }
  return verified.size();
}

void report_new_kernels(const CompiledImages& compiled, const CompileHooks& hooks, BuildReport& report) {
  for (size_t i = 0; i < compiled.images.size(); ++i) {
    if (compiled.is_new[i] != 0) report.new_kernels.push_back(compiled.images[i].kernel);
  }
  std::ranges::sort(report.new_kernels);
  report.reused_kernels = compiled.images.size() - report.new_kernels.size();
  if (hooks.log && !report.new_kernels.empty())
    hooks.log(fmt::format("compiled {} of {} kernels: {}", report.new_kernels.size(), compiled.images.size(),
                          fmt::join(report.new_kernels, ", ")));
}

// They were compiled since the first node was lowered: what is left.
CompiledImages finish_kernels(ImageWork& work, const Build& build) {
  build.phases.begin("compile kernels");
  CompiledImages compiled = work.finish([&](size_t done, size_t total) { build.phases.report(done, total); });
  build.report.distinct_kernels = compiled.images.size();
  report_new_kernels(compiled, build.hooks, build.report);
  return compiled;
}

// The file of tactics that a build reads and adds to; empty: there is none.
std::filesystem::path tactic_file(const CompileOptions& options, const CompileHooks& hooks) {
  if (!options.target.times_tactics()) return {};
  if (!options.tactic_file.empty()) return options.tactic_file;
  const std::shared_ptr<DiskStore>& disk = hooks.cache_use.disk;
  return disk != nullptr && disk->is_usable() ? disk->folder() / "tactics.txt" : std::filesystem::path();
}

// A file of ours in the cache is like its entries: a damaged one goes, with a line of the log. One that was
// named is the user's, and may be another kind of file by mistake.
TacticTable tactics_of(const CompileOptions& options, const CompileHooks& hooks) {
  const std::filesystem::path file = tactic_file(options, hooks);
  if (file.empty()) return {};
  try {
    return read_tactics(file);
  } catch (const UserError& error) {
    if (!options.tactic_file.empty()) throw;
    hooks.cache_use.report()(fmt::format("cache: {}; it is removed", error.details().message));
    std::error_code failure;
    if (hooks.cache_use.disk_policy != WritePolicy::kReadOnly) std::filesystem::remove(file, failure);
  }
  return {};
}

// What cannot be kept is timed again the next time.
void keep_tactics(const CompileOptions& options, const CompileHooks& hooks, const TacticTable& found) {
  if (options.tactic_file.empty() && hooks.cache_use.disk_policy == WritePolicy::kReadOnly) return;
  const std::filesystem::path file = tactic_file(options, hooks);
  if (file.empty()) return;
  try {
    add_tactics(file, found);
  } catch (const UserError& error) {
    hooks.cache_use.report()(fmt::format("cache: what was timed is not kept: {}", error.details().message));
  }
}

KnownTactics known_tactics(const CompileOptions& options, const CompileHooks& hooks) {
  if (!options.target.times_tactics()) return {};
  const Executor* executor = find_executor(hooks, options.target);
  const Image image{.target = options.target.backend + ":" + options.target.device};
  return {.table = tactics_of(options, hooks),
          .processor = executor != nullptr ? executor->processor() : "",
          .can_time = executor != nullptr && executor->missing(image).empty()};
}

// Levels 4 and 5: times what the tactic file does not know, if this machine can run the engine.
void tune_steps(EngineData& engine, std::span<const TunableStep> steps, const Build& build) {
  const CompileOptions& options = build.options;
  const CompileHooks& hooks = build.hooks;
  TuningReport& report = build.report.tuning;
  if (!build.known.can_time)
    report.note = "this machine cannot run the engine: tactics that no file names are predicted";
  if (!groups_of(engine).empty()) {
    report.note =
        "runs with collectives need all ranks and are not timed: tactics that no file names are predicted";
    return;
  }
  if (steps.empty()) return;
  build.phases.begin("time tactics");
  TacticTable found;
  const auto keep = [&] { keep_tactics(options, hooks, found); };
  const Tuning tuning{*hooks.host,           hooks.gpu,  build.phases, options.target.level,
                      build.known.processor, hooks.quiet};
  try {
    report = tune(engine, steps, tuning, found);
  } catch (...) {
    keep();  // a build that is cancelled goes on there the next time
    throw;
  }
  keep();
  if (hooks.cache_use.problems != nullptr) hooks.cache_use.problems->check();
}

FoldedWeights folded_weights(std::span<const PassRunner::Timing> passes) {
  FoldedWeights folded;
  for (const PassRunner::Timing& pass : passes) {
    if (pass.name != "fold_constants") continue;
    for (const Rewrite& rewrite : pass.rewrites)
      ++(rewrite.op == ops::constant.name ? folded.numbers : folded.operators);
  }
  return folded;
}

Split run_passes(const Graph& graph, PassRunner& runner, const Build& build) {
  build.phases.begin("simplify");
  Split split = runner.run(Stage::kSimplify, split_for_passes(graph));
  build.phases.begin("adapt");
  split = runner.run(Stage::kAdapt, std::move(split));
  build.report.slow = slow_nodes(split.main, build.backends);
  build.phases.begin("specialize");
  for (const Stage stage : {Stage::kLayout, Stage::kHoist, Stage::kFuse, Stage::kJoin})
    split = runner.run(stage, std::move(split));
  build.report.passes = runner.timings();
  if (build.options.immutable_weights) build.report.folded = folded_weights(build.report.passes);
  return split;
}

// Kernels that are new are mostly of the main program: lowered first, they are compiled from early on.
LoweredPrograms lower_both(const Split& split, ImageTable& table, const EngineBackends& backends) {
  const SymbolTable& symbols = split.main.symbols;
  std::vector<NodeStep> main = lower_graph(split.main, backends, symbols, table);
  return {.init = lower_graph(split.init, backends, symbols, table), .main = std::move(main)};
}

struct Planned {
  AssembledEngine engine;
  std::vector<TunableStep> tunable;
  CompiledImages images;  // with verify_kernels
};

// Takes the graphs, so that they are freed while kernels are compiled.
Planned lower_and_plan(Split split, const std::string& structure, ImageWork& work, const Build& build) {
  const Target& target = build.options.target;
  build.phases.begin("lower");
  ImageTable table{
      .nodes = {}, .ids = {}, .work = &work, .shares = build.options.share_kernels, .known = &build.known};
  LoweredPrograms lowered = lower_both(split, table, build.backends);
  build.report.repeats = find_repeats(lowered.main);
  Planned planned;
  if (build.options.verify_kernels) {
    planned.images = finish_kernels(work, build);
    build.phases.begin("verify kernels");
    build.report.verified_kernels = verify_all(lowered, planned.images.images, split.main.symbols, build);
  }
  build.phases.begin("plan");
  const std::vector<NodeStep> steps = target.times_tactics() ? lowered.main : std::vector<NodeStep>();
  planned.engine = assemble(
      {build.model, split, std::move(lowered), target, build.backends.own().backend->place(), structure},
      build.report);
  planned.tunable = tunable_steps(steps, planned.engine.data->main);
  return planned;
}

// The result must obey the rules of engine files; a violation is our fault, not a file's.
void check_engine(const EngineData& engine) {
  try {
    validate_engine(engine);
  } catch (const UserError& error) {
    throw InternalError("the compiled engine is broken: " + error.details().message);
  }
}

// Bounds without a symbol fail in every call, or in none.
void refuse_what_no_size_meets(std::span<const SizeCheck> checks) {
  for (const SizeCheck& check : checks) {
    const bool is_fixed = check.kind == CheckKind::kBounds && symbols_of(check.condition).empty();
    if (is_fixed && !evaluate(check.condition, {})) fail_check(check, {}, {});
  }
}

}  // namespace

aten::ImportOptions import_options(const CompileOptions& options) {
  return {.weights_are_constants = options.immutable_weights, .random_seed = options.random_seed};
}

std::shared_ptr<EngineData> compile(const aten::Program& program, const CompileOptions& options,
                                    std::span<const Backend* const> backends, const CompileHooks& hooks,
                                    BuildReport* report) {
  return compile_model(
      program, [&] { return aten::import_program(program, import_options(options)); }, options, backends,
      hooks, report);
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
  const Target& target = options.target;
  const EngineBackends chosen(backends, target);
  PassRunner runner(pipeline_for(chosen, &filled.nodes), options.passes, hooks.dump);

  phases.begin("import");
  aten::Imported model = import();
  apply_profiles(model.graph.symbols, tensor_arguments(model), options.profiles);
  model.graph.erase_dead_nodes();
  complete_checks(model.graph, model.checks);
  refuse_what_no_size_meets(model.checks);
  set_only_rank(model.graph, options.rank);
  runner.check("import", model.graph);
  filled.without_node = entries_without_node(model.graph, options.passes.disabled);
  filled.unused_backend_of = set_named_sides(model.graph, chosen);
  phases.begin("key");
  const KnownTactics known = known_tactics(options, hooks);
  const CanonicalGraph canonical = canonicalize(model.graph);
  name_symbols(model, canonical.symbols);
  const std::string structure =
      engine_key(model, canonical, chosen, options,
                 target.times_tactics() ? known.processor + "\n" + known.table.text() : "");
  const ModelNames names(model.graph, canonical);
  const NamedModel named{program, model, names};
  EngineEntry entry(structure, named, options, hooks);
  if (auto found = entry.find(filled)) return found;

  const Build build{named, chosen, options, hooks, known, phases, filled};
  ImageWork work({hooks.cache, hooks.cache_use}, options.threads);
  Planned planned = lower_and_plan(run_passes(model.graph, runner, build), structure, work, build);
  model.graph = Graph("");
  const std::shared_ptr<EngineData>& engine = planned.engine.data;
  engine->has_immutable_weights = options.immutable_weights;
  engine->images =
      options.verify_kernels ? std::move(planned.images.images) : finish_kernels(work, build).images;
  check_engine(*engine);
  if (target.times_tactics()) {
    tune_steps(*engine, planned.tunable, build);
    drop_unused_images(*engine);
    filled.distinct_kernels = engine->images.size();
  }
  entry.keep(planned.engine, filled);
  return engine;
}

std::vector<SlowNode> find_slow(const aten::Program& program, const CompileOptions& options,
                                std::span<const Backend* const> backends) {
  const EngineBackends chosen(backends, options.target);
  PassRunner runner(pipeline_for(chosen), options.passes);
  aten::Imported model = aten::import_program(program, import_options(options));
  apply_profiles(model.graph.symbols, tensor_arguments(model), options.profiles);
  set_named_sides(model.graph, chosen);
  Split split{.init = Graph("init"), .main = std::move(model.graph)};
  for (const Stage stage : {Stage::kSimplify, Stage::kAdapt}) split = runner.run(stage, std::move(split));
  return slow_nodes(split.main, chosen);
}

}  // namespace ingot::core
