// SPDX-License-Identifier: Apache-2.0
#include "backends/fake/execute/queue.h"

#include <chrono>
#include <cstring>

#include <fmt/core.h>

#include "loops/interpreter.h"
#include "support/error.h"

namespace ingot::core::fake {

FakeQueue::FakeQueue(std::shared_ptr<FakeMemory> memory, const Options& options, Counts& counts)
    : memory_(std::move(memory)),
      most_microseconds_(options.most_microseconds),
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
  Work work = work_of(span);
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
  return std::nullopt;
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
  for (const KernelCall& call : span.calls)
    list.add(call, call.launch != nullptr ? images.kernels[call.launch->image].get() : nullptr);
  const auto capture = [&](const CallList& captured) {
    ++counts_.graphs;
    return std::make_shared<const std::vector<ListedCall>>(captured.calls());
  };
  if (const Work* graph = graphs_.find(list, capture)) {
    ++counts_.replays;
    return *graph;
  }
  return std::make_shared<const std::vector<ListedCall>>(list.calls());
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
      for (size_t i = 0; i < work->size() && !is_broken; ++i) run_call((*work)[i]);
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
  const auto microseconds = random_() % static_cast<uint32_t>(most_microseconds_ + 1);
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

void FakeQueue::run_call(const ListedCall& call) {
  delay();
  ++counts_.calls;
  if (call.launch == nullptr) {
    const auto from = memory_->anywhere(call.buffers[0], call.bytes);
    const auto to = memory_->anywhere(call.buffers[1], call.bytes);
    if (call.bytes > 0) std::memmove(to.get(), from.get(), call.bytes);
    return;
  }
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
