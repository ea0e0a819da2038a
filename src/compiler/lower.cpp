// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

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

// Work shared by the compiling threads: the next kernel to take, and the first failure.
struct Queue {
  std::atomic<size_t> next{0}, done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::exception_ptr failure;
};

void compile_next(const ImageTable& table, std::vector<Image>& images, Queue& queue) {
  for (size_t i; !queue.stop && (i = queue.next++) < table.compile.size();) {
    try {
      images[i] = table.compile[i]();
      ++queue.done;
    } catch (...) {
      const std::scoped_lock lock(queue.mutex);
      if (!queue.failure) queue.failure = std::current_exception();
      queue.stop = true;
    }
  }
}

// The caller's thread compiles too and reports between kernels, so that callbacks come from one thread only.
void compile_and_report(const ImageTable& table, std::vector<Image>& images, Queue& queue,
                        const std::function<void(size_t, size_t)>& report) {
  const size_t total = table.compile.size();
  for (size_t i; !queue.stop && (i = queue.next++) < total;) {
    images[i] = table.compile[i]();
    report(++queue.done, total);
  }
}

// As many as the system has, at most `count`: the caller works too.
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
    for (LoweredStep& step : backend.lower(*node, symbols, target)) {
      const ImageId image = step.compile ? image_for(step, images) : kNoId;
      const std::string runs_on = step.routine.empty() ? target.backend : std::string();
      steps.push_back({.node = node.get(),
                       .step = std::move(step),
                       .image = image,
                       .node_records = {},
                       .operations = work.operations,
                       .bytes = work.bytes,
                       .backend = runs_on});
      work = {};  // the first of a node's steps stands for all
    }
  }
  return steps;
}

std::vector<Image> compile_images(const ImageTable& table, int threads,
                                  const std::function<void(size_t, size_t)>& report) {
  std::vector<Image> images(table.compile.size());
  Queue queue;
  {
    std::vector<std::jthread> workers;
    try {
      start(workers, threads - 1, [&] { compile_next(table, images, queue); });
      compile_and_report(table, images, queue, report);
    } catch (...) {
      queue.stop = true;
      throw;  // the workers finish their kernel and are joined
    }
  }
  if (queue.failure) std::rethrow_exception(queue.failure);
  return images;
}

}  // namespace ingot::core
