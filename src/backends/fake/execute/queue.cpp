// SPDX-License-Identifier: Apache-2.0
#include "backends/fake/execute/queue.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include <fmt/core.h>

#include "backends/fake/execute/collective.h"
#include "loops/interpreter.h"
#include "support/error.h"

namespace ingot::core::fake {

FakeQueue::FakeQueue(std::shared_ptr<FakeMemory> memory, const Options& options, Counts& counts)
    : memory_(std::move(memory)),
      options_(options),
      counts_(counts),
      random_(static_cast<uint32_t>(options.seed)),
      thread_([this] { serve(); }) {}

FakeQueue::~FakeQueue() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<CallFailure> FakeQueue::run(const CallSpan& span) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto failure = take_failure()) return failure;
  }
  add(work_of(span));
  return std::nullopt;
}

bool FakeQueue::repeat(std::span<const uint64_t> identity, void*) {
  {
    const std::lock_guard lock(mutex_);
    if (broken_ || !failures_.empty()) return false;
  }
  const Work* graph = graphs_.find_named(identity);
  if (graph == nullptr) return false;
  ++counts_.replays;
  ++counts_.repeats;
  add(*graph);
  return true;
}

void FakeQueue::add(Work work) {
  const bool is_awaited = work->has_collectives;
  std::unique_lock lock(mutex_);
  work_.push_back(std::move(work));
  changed_.notify_all();
  if (is_awaited) changed_.wait(lock, [&] { return work_.empty(); });
}

OpenedGroup FakeQueue::open_group(Communicator& group, uint64_t program) {
  if (!options_.has_collectives) return Queue::open_group(group, program);
  program_ = program;
  return {};
}

std::optional<CallFailure> FakeQueue::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return work_.empty(); });
  return take_failure();
}

std::optional<CallFailure> FakeQueue::take_failure() {
  if (broken_) std::rethrow_exception(broken_);
  if (failures_.empty()) return std::nullopt;
  const CallFailure first = failures_.front();
  failures_.clear();
  return first;
}

FakeQueue::Work FakeQueue::work_of(const CallSpan& span) {
  const auto& images = static_cast<const Images&>(*span.images);
  CallList list;
  // Behind each call come the copies that may start then; `latest` counts all of them.
  const auto count = [&](uint32_t calls) {
    const auto started = [&](const Prefetch& fetch) { return fetch.start < calls; };
    return calls + static_cast<uint32_t>(std::ranges::count_if(span.prefetches, started));
  };
  size_t started = 0;
  for (uint32_t i = 0; i < span.calls.size(); ++i) {
    const KernelCall& call = span.calls[i];
    for (; started < span.prefetches.size() && span.prefetches[started].start <= i; ++started) {
      const Prefetch& fetch = span.prefetches[started];
      list.add(fetch, count(fetch.before + 1) - 1);
    }
    if (call.collective != nullptr)
      list.add(*call.collective, call.buffers);
    else
      list.add(call, call.launch != nullptr ? images.kernels[call.launch->image].get() : nullptr);
  }
  const auto capture = [&](const CallList& captured) {
    ++counts_.graphs;
    return std::make_shared<const Calls>(Calls{captured.calls(), captured.has_collectives()});
  };
  if (const Work* graph = span.one_by_one ? nullptr : graphs_.find(list, capture)) {
    graphs_.name(span.identity);
    ++counts_.replays;
    return *graph;
  }
  return std::make_shared<const Calls>(Calls{list.calls(), list.has_collectives()});
}

void FakeQueue::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !work_.empty(); });
    if (work_.empty()) return;
    const Work work = work_.front();
    const bool is_broken = broken_ != nullptr;
    lock.unlock();
    std::exception_ptr failure;
    try {
      if (!is_broken) run_all(work->calls);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure) broken_ = failure;
    work_.pop_front();
    changed_.notify_all();
  }
}

void FakeQueue::delay() {
  const auto microseconds = random_() % static_cast<uint32_t>(options_.most_microseconds + 1);
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

// Copies beside the calls happen at any time between the earliest and the latest, in their order.
void FakeQueue::run_all(const std::vector<ListedCall>& calls) {
  std::deque<const ListedCall*> waiting;
  const auto catch_up = [&](size_t position) {
    while (!waiting.empty() && (waiting.front()->latest <= position || random_() % 2 == 0)) {
      run_copy(*waiting.front());
      waiting.pop_front();
    }
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].latest > 0) waiting.push_back(&calls[i]);
    catch_up(i);
    if (calls[i].latest == 0) run_call(calls[i]);
  }
}

void FakeQueue::run_copy(const ListedCall& call) const {
  const auto from = memory_->anywhere(call.buffers[0], call.bytes);
  const auto to = memory_->anywhere(call.buffers[1], call.bytes);
  if (call.bytes > 0) std::memmove(to.get(), from.get(), call.bytes);
}

void FakeQueue::run_collective_of(const ListedCall& call) const {
  const auto from = memory_->at(call.buffers[0], operand_bytes(*call.collective));
  const auto to = memory_->at(call.buffers[1], result_bytes(*call.collective));
  run_collective(*call.collective, program_, from.get(), to.get());
}

void FakeQueue::run_call(const ListedCall& call) {
  delay();
  ++counts_.calls;
  if (call.collective) return run_collective_of(call);
  if (call.launch == nullptr) return run_copy(call);
  const int64_t status = run_kernel(call);
  if (status == 0) return;
  const std::lock_guard lock(mutex_);
  failures_.push_back({call.launch, status});
}

int64_t FakeQueue::run_kernel(const ListedCall& call) const {
  const loops::Kernel& kernel = call.kernel->kernel;
  invariant(
      call.buffers.size() == kernel.buffers.size() && call.symbols.size() == call.kernel->symbols.size(),
      fmt::format("a launch of '{}' has other arguments than the kernel", kernel.name));
  SymbolValues symbols;
  for (size_t i = 0; i < call.symbols.size(); ++i) symbols.emplace(call.kernel->symbols[i], call.symbols[i]);
  std::vector<std::shared_ptr<std::byte>> held;
  std::vector<TensorView> views;
  for (size_t i = 0; i < call.buffers.size(); ++i) {
    const int64_t bytes = evaluate(storage_bytes(kernel.buffers[i].type), symbols);
    held.push_back(memory_->at(call.buffers[i], static_cast<size_t>(bytes)));
    views.push_back(
        {.data = held.back().get(), .dtype = kernel.buffers[i].type.dtype, .shape = {}, .strides = {}});
  }
  return static_cast<int64_t>(loops::interpret(kernel, views, symbols));
}

}  // namespace ingot::core::fake
