// SPDX-License-Identifier: Apache-2.0
#include "compiler/compile.h"

#include <chrono>

#include <fmt/core.h>

#include "compiler/assemble.h"
#include "compiler/key.h"
#include "compiler/lower.h"
#include "compiler/profile.h"
#include "importers/aten/import.h"
#include "partition/partition.h"
#include "passes/hoist.h"
#include "passes/target_passes.h"
#include "support/error.h"
#include "support/hash.h"

namespace ingot::core {
namespace {

// Times phases, reports them, and is where a build is cancelled.
class Phases {
 public:
  Phases(const CompileHooks& hooks, BuildReport& report) : hooks_(hooks), report_(report) {}
  template <typename Function>
  auto run(std::string_view name, size_t number, Function&& function) {
    if (hooks_.progress && !hooks_.progress({name, number, kTotal, -1})) {
      throw UserError("INGOT-U010", "the build was cancelled");
    }
    const auto start = std::chrono::steady_clock::now();
    auto result = function();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    report_.phases.push_back({std::string(name), seconds.count()});
    return result;
  }

 private:
  static constexpr size_t kTotal = 6;
  const CompileHooks& hooks_;
  BuildReport& report_;
};

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
    images[id].key = digest(as_bytes(fmt::format("code by {}\nfor {}:{}\n{}", backend.generator(),
                                                 target.backend, to_string(target.features), text)));
  }
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
  split.init = runner.run("fuse", std::move(split.init), fuse_all, kFuseLevel);
  split.main = runner.run("fuse", std::move(split.main), fuse_all, kFuseLevel);
  return split;
}

}  // namespace

std::shared_ptr<EngineData> compile(const aten::Program& program, const CompileOptions& options,
                                    std::span<const Backend* const> backends, const CompileHooks& hooks,
                                    BuildReport* report) {
  BuildReport local;
  BuildReport& filled = report != nullptr ? *report : local;
  Phases phases(hooks, filled);
  PassRunner runner(options.passes, hooks.dump);
  const Target& target = options.target;
  const Backend& backend = find_backend(backends, target.backend);

  aten::Imported model = phases.run("import", 0, [&] { return aten::import_program(program); });
  apply_profiles(model.graph, options.profiles);
  std::string key = engine_key(program, model, backend, options);
  Graph graph = phases.run("simplify", 1, [&] { return run_pipeline(std::move(model.graph), runner); });
  require_support(graph, backend, target);
  const Split split =
      phases.run("specialize", 2, [&] { return specialize(std::move(graph), backend, options, runner); });

  ImageTable table;
  auto lowered = phases.run("lower", 3, [&] {
    return LoweredPrograms{lower_graph(split.init, backend, target, split.main.symbols, table),
                           lower_graph(split.main, backend, target, split.main.symbols, table)};
  });
  std::vector<Image> images =
      phases.run("compile kernels", 4, [&] { return compile_images(table, target.threads, hooks.progress); });
  set_keys(images, table, backend, target);
  return phases.run("plan", 5, [&] {
    return assemble({program, model, split, std::move(lowered), std::move(images), target, std::move(key)},
                    filled);
  });
}

}  // namespace ingot::core
