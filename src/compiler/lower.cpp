// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "compiler/image_entry.h"
#include "compiler/step_work.h"
#include "ir/control_flow.h"
#include "ops/alias.h"
#include "support/error.h"

namespace ingot::core {
namespace {

void set_image(LoweredKernel& kernel, ImageTable& images) {
  if (!images.shares) kernel.key += fmt::format("\nuse {}", images.images.size());
  const auto [entry, is_new] = images.ids.try_emplace(kernel.key, static_cast<ImageId>(images.images.size()));
  if (is_new) images.images.push_back({kernel.key, std::move(kernel.compile)});
  kernel.compile = nullptr;
  kernel.launch.image = entry->second;
}

// The tactic that was the fastest before: then there is nothing left to time.
void take_known_tactic(LoweredStep& step, const KnownTactics& known, int level) {
  const TacticRecord* record = known.table.find(known.processor, step.site, level);
  if (record == nullptr) return;
  const auto found = std::ranges::find(step.others, record->tactic, &LoweredKernel::tactic);
  if (found != step.others.end()) std::swap(*found, *step.kernel());
  if (step.kernel()->tactic == record->tactic) step.others.clear();
}

void choose_known_tactic(LoweredStep& step, const KnownTactics* known, int level) {
  if (known != nullptr) take_known_tactic(step, *known, level);
  if (known == nullptr || !known->can_time) step.others.clear();
}

// A digest of all that decides which tactics there are, and how fast they are.
std::string site_of(const LoneNode& lone, size_t step, const Target& target) {
  const std::string text = fmt::format("{}:{} numerics {} step {}\n{}", target.backend, target.device,
                                       static_cast<int>(target.numerics), step, lone.text());
  return hex(digest(as_bytes(text)));
}

const LoweredNode& lower_alone(LoneNode lone, const Backend& backend, const Target& target,
                               ImageTable& images) {
  const std::string use = images.shares ? "" : fmt::format("\nuse {}", images.nodes.size());
  const auto [entry, is_new] = images.nodes.try_emplace(lone.text() + use);
  LoweredNode& lowered = entry->second;
  if (!is_new) return lowered;
  lowered.lone = std::move(lone);
  lowered.steps = backend.lower(*lowered.lone.node, lowered.lone.graph.symbols, target);
  for (size_t i = 0; i < lowered.steps.size(); ++i) {
    LoweredStep& step = lowered.steps[i];
    if (!step.others.empty()) {
      step.site = site_of(lowered.lone, i, target);
      choose_known_tactic(step, images.known, target.level);
    }
    if (LoweredKernel* kernel = step.kernel()) set_image(*kernel, images);
    for (LoweredKernel& other : step.others) set_image(other, images);
  }
  return lowered;
}

void substitute_all(Launch& launch, const std::map<std::string, Dim>& symbols) {
  for (auto* dims : {&launch.symbols, &launch.sizes}) {
    for (Dim& dim : *dims) dim = substitute(dim, symbols);
  }
}

// The steps of a node that was lowered, for the equal node that stands where `around` says.
std::vector<LoweredStep> steps_for(const Surroundings& around, const LoweredNode& lowered) {
  std::vector<LoweredStep> steps = lowered.steps;
  const auto outer = [&](const Value* value) {
    return value == nullptr ? nullptr : around.values[lowered.lone.positions.at(value)];
  };
  for (LoweredStep& step : steps) {
    for (Value*& argument : step.arguments) argument = outer(argument);
    for (auto& [symbol, value] : step.binds) {
      symbol = around.symbols.at(symbol).symbol_name();
      value = outer(value);
    }
    if (LoweredKernel* kernel = step.kernel()) substitute_all(kernel->launch, around.symbols);
    for (LoweredKernel& other : step.others) substitute_all(other.launch, around.symbols);
  }
  return steps;
}

// Routines read their attributes, which name symbols, where the engine runs.
std::vector<LoweredStep> lower_node(const Node& node, const Backend& backend, const Target& target,
                                    const SymbolTable& symbols, ImageTable& images) {
  if (!node.op->routine.empty()) {
    std::vector<LoweredStep> steps = backend.lower(node, symbols, target);
    for (LoweredStep& step : steps) {
      if (LoweredKernel* kernel = step.kernel()) set_image(*kernel, images);
    }
    return steps;
  }
  LoneNode lone = isolate(node, symbols);
  const Surroundings around = std::exchange(lone.around, {});
  return steps_for(around, lower_alone(std::move(lone), backend, target, images));
}

// In the order that the runtime expects (engine/program.h).
LoweredStep control_step(const Node& node) {
  LoweredStep step{.name = std::string(node.op->name)};
  if (is_loop(node)) {
    step.action = LoopStep{};
    step.arguments = {nullptr};  // no trip count
  } else {
    step.action = BranchStep{};
  }
  step.arguments.insert(step.arguments.end(), node.operands.begin(), node.operands.end());
  step.writes.resize(step.arguments.size(), false);
  step.arguments.insert(step.arguments.end(), node.results.begin(), node.results.end());
  step.writes.resize(step.arguments.size(), true);
  return step;
}

// Work shared by the compiling threads: the next kernel to take, and the first failure.
class WorkList {
 public:
  WorkList(const ImageTable& table, std::string_view target_text, const ImageCache& cache)
      : table_(table),
        target_text_(target_text),
        cache_(cache),
        images_(table.images.size()),
        is_new_(table.images.size(), 1) {}

  bool do_next() {
    const size_t i = next_++;
    if (stop || i >= images_.size()) return false;
    images_[i] = image(i);
    return true;
  }

  void do_all() {
    try {
      while (do_next()) ++done;
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stop = true;
    }
  }

  CompiledImages take() {
    if (failure_) std::rethrow_exception(failure_);
    return {std::move(images_), std::move(is_new_)};
  }

  std::atomic<size_t> done{0};
  std::atomic<bool> stop{false};

 private:
  Image image(size_t index) {
    const ImageTable::Entry& entry = table_.images[index];
    const CacheKey key = make_key(EntryKind::kKernel, std::string(target_text_) + entry.key);
    Image image = cache_.cache == nullptr ? entry.compile() : from_cache(key, entry.compile, is_new_[index]);
    image.key = key.digest;
    return image;
  }

  Image from_cache(const CacheKey& key, const std::function<Image()>& compile, uint8_t& is_new) {
    const FoundEntry found = cache_.cache->get(key, cache_.use, [&] { return encode_image(compile()); });
    std::optional<Image> image = decode_image(*found.bytes);
    if (!image) return compile();
    is_new = found.origin == Origin::kMade ? 1 : 0;
    return *std::move(image);
  }

  const ImageTable& table_;
  const std::string_view target_text_;
  const ImageCache& cache_;
  std::atomic<size_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::vector<Image> images_;
  std::vector<uint8_t> is_new_;  // bytes, as several threads write them
};

// As many as the system can start, at most `count`: the caller works too.
template <typename Function>
void start(std::vector<std::jthread>& workers, int count, Function function) {
  try {
    for (int i = 0; i < count; ++i) workers.emplace_back(function);
  } catch (const std::system_error&) {
  }
}

}  // namespace

std::vector<NodeStep> lower_graph(const Graph& graph, const Backend& backend, const Target& target,
                                  const SymbolTable& symbols, ImageTable& images) {
  std::vector<NodeStep> steps;
  for (const auto& node : graph.nodes()) {
    if (node->op->traits.has(Trait::kSource) || alias_offset(*node)) continue;
    if (node->op->traits.has(Trait::kControlFlow)) {
      NodeStep& step = steps.emplace_back(NodeStep{.node = node.get(), .step = control_step(*node)});
      for (const auto& nested : node->graphs)
        step.nested.push_back({nested.get(), lower_graph(*nested, backend, target, symbols, images)});
      continue;
    }
    StepWork work = work_of(*node);
    for (LoweredStep& step : lower_node(*node, backend, target, symbols, images)) {
      steps.push_back({.node = node.get(),
                       .step = std::move(step),
                       .node_records = {},
                       .operations = work.operations,
                       .bytes = work.bytes,
                       .backend = target.backend});
      work = {};  // the first of a node's steps accounts for the work of all
    }
  }
  return steps;
}

// The caller's thread compiles too and reports between kernels, so that callbacks come from one thread only.
CompiledImages compile_images(const ImageTable& table, std::string_view target_text, int threads,
                              const ImageCache& cache, const std::function<void(size_t, size_t)>& report) {
  WorkList work_list(table, target_text, cache);
  {
    std::vector<std::jthread> workers;
    try {
      start(workers, threads - 1, [&] { work_list.do_all(); });
      while (work_list.do_next()) report(++work_list.done, table.images.size());
    } catch (...) {
      work_list.stop = true;
      throw;  // the workers finish their kernel and are joined
    }
  }
  return work_list.take();
}

}  // namespace ingot::core
