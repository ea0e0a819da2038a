// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "compiler/step_work.h"
#include "ops/alias.h"
#include "support/error.h"

namespace ingot::core {
namespace {

ImageId image_for(LoweredStep& step, ImageTable& images) {
  const auto [entry, is_new] =
      images.ids.try_emplace(step.kernel_key, static_cast<ImageId>(images.compile.size()));
  if (is_new) images.compile.push_back(std::move(step.compile));
  step.compile = nullptr;
  return entry->second;
}

const LoweredNode& lower_alone(LoneNode lone, const Backend& backend, const Target& target,
                               ImageTable& images) {
  const auto [entry, is_new] = images.nodes.try_emplace(lone.text());
  LoweredNode& lowered = entry->second;
  if (!is_new) return lowered;
  lowered.lone = std::move(lone);
  lowered.steps = backend.lower(*lowered.lone.node, lowered.lone.graph.symbols, target);
  for (LoweredStep& step : lowered.steps) {
    if (step.compile) step.launch.image = image_for(step, images);
  }
  return lowered;
}

// The steps of a node that was lowered, for the equal node that stands where `around` says.
std::vector<LoweredStep> steps_for(const Surroundings& around, const LoweredNode& lowered) {
  std::vector<LoweredStep> steps = lowered.steps;
  const auto outer = [&](const Value* value) {
    return value == nullptr ? nullptr : around.values[lowered.lone.position(value)];
  };
  for (LoweredStep& step : steps) {
    for (Value*& argument : step.arguments) argument = outer(argument);
    for (auto& [symbol, value] : step.binds) {
      symbol = around.symbols.at(symbol).symbol_name();
      value = outer(value);
    }
    for (auto* dims : {&step.launch.symbols, &step.launch.sizes}) {
      for (Dim& dim : *dims) dim = substitute(dim, around.symbols);
    }
  }
  return steps;
}

// Routines read their attributes, which name symbols, where the engine runs.
std::vector<LoweredStep> lower_node(const Node& node, const Backend& backend, const Target& target,
                                    const SymbolTable& symbols, ImageTable& images) {
  if (!node.op->routine.empty()) return backend.lower(node, symbols, target);
  LoneNode lone = isolate(node, symbols);
  const Surroundings around = std::exchange(lone.around, {});
  return steps_for(around, lower_alone(std::move(lone), backend, target, images));
}

// Work shared by the compiling threads: the next kernel to take, and the first failure.
struct WorkList {
  std::atomic<size_t> next{0}, done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::exception_ptr failure;
};

void compile_next(const ImageTable& table, std::vector<Image>& images, WorkList& work_list) {
  for (size_t i; !work_list.stop && (i = work_list.next++) < table.compile.size();) {
    try {
      images[i] = table.compile[i]();
      ++work_list.done;
    } catch (...) {
      const std::scoped_lock lock(work_list.mutex);
      if (!work_list.failure) work_list.failure = std::current_exception();
      work_list.stop = true;
    }
  }
}

// The caller's thread compiles too, and reports between kernels, so that callbacks come from one thread only.
void compile_and_report(const ImageTable& table, std::vector<Image>& images, WorkList& work_list,
                        const std::function<void(size_t, size_t)>& report) {
  const size_t total = table.compile.size();
  for (size_t i; !work_list.stop && (i = work_list.next++) < total;) {
    images[i] = table.compile[i]();
    report(++work_list.done, total);
  }
}

// As many as the system can start, at most `count`: the caller works too.
template <typename Function>
void start(std::vector<std::jthread>& workers, int count, Function function) {
  try {
    for (int i = 0; i < count; ++i) workers.emplace_back(function);
  } catch (const std::system_error&) {
  }
}

}  // namespace

std::vector<ScheduledStep> lower_graph(const Graph& graph, const Backend& backend, const Target& target,
                                       const SymbolTable& symbols, ImageTable& images) {
  std::vector<ScheduledStep> steps;
  for (const auto& node : graph.nodes()) {
    if (node->op->traits.has(Trait::kSource) || alias_offset(*node)) continue;
    StepWork work = work_of(*node);
    for (LoweredStep& step : lower_node(*node, backend, target, symbols, images)) {
      const std::string runs_on = step.routine.empty() ? target.backend : std::string();
      steps.push_back({.node = node.get(),
                       .step = std::move(step),
                       .node_records = {},
                       .operations = work.operations,
                       .bytes = work.bytes,
                       .backend = runs_on});
      work = {};  // the first of a node's steps accounts for the work of all
    }
  }
  return steps;
}

std::vector<Image> compile_images(const ImageTable& table, int threads,
                                  const std::function<void(size_t, size_t)>& report) {
  std::vector<Image> images(table.compile.size());
  WorkList work_list;
  {
    std::vector<std::jthread> workers;
    try {
      start(workers, threads - 1, [&] { compile_next(table, images, work_list); });
      compile_and_report(table, images, work_list, report);
    } catch (...) {
      work_list.stop = true;
      throw;  // the workers finish their kernel and are joined
    }
  }
  if (work_list.failure) std::rethrow_exception(work_list.failure);
  return images;
}

}  // namespace ingot::core
