// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/kernel_run.h"

#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace ingot::bench {

AlignedMemory allocate(size_t bytes) {
  constexpr size_t kHugePage = 2 << 20;
  bytes = (bytes + 64 + kHugePage - 1) / kHugePage * kHugePage;
  AlignedMemory memory(static_cast<std::byte*>(std::aligned_alloc(kHugePage, bytes)), std::free);
  madvise(memory.get(), bytes, MADV_HUGEPAGE);
  auto* numbers = reinterpret_cast<float*>(memory.get());
  for (size_t i = 0; i < bytes / sizeof(float); ++i) numbers[i] = static_cast<float>(i % 7) / 8 - 0.375f;
  return memory;
}

KernelRun::KernelRun(const core::cpu::TemplateKernel& plan, const std::vector<core::TensorType>& buffers,
                     const core::SymbolValues& symbols, int threads)
    : image_(plan.compile()), items_(evaluate(plan.launch.work_items, symbols)) {
  for (const core::TensorType& type : buffers) {
    memory_.push_back(allocate(static_cast<size_t>(evaluate(storage_bytes(type), symbols))));
    pointers_.push_back(memory_.back().get());
  }
  for (const std::string& symbol : plan.launch.symbols) symbols_.push_back(symbols.at(symbol));
  auto bytes = static_cast<size_t>(evaluate(plan.launch.scratch_bytes, symbols));
  for (int thread = 0; thread < threads; ++thread) scratch_.push_back(allocate(bytes));
}

void KernelRun::run_part(int thread) const {
  auto parts = static_cast<int64_t>(scratch_.size());
  image_(pointers_, symbols_, items_ * thread / parts, items_ * (thread + 1) / parts,
         scratch_[static_cast<size_t>(thread)].get());
}

struct Team::State {
  int threads;
  std::atomic<int64_t> turn{0};
  std::atomic<int> done{0};
  std::atomic<bool> stop{false};
  const std::function<void(int)>* work = nullptr;
  std::vector<std::thread> workers;
};

namespace {

void pin(int thread) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  int seen = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || seen++ != thread) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

}  // namespace

Team::Team(int threads) : state_(std::make_unique<State>()) {
  state_->threads = threads;
  for (int thread = 1; thread < threads; ++thread) {
    state_->workers.emplace_back([this, thread] {
      pin(thread);
      for (int64_t turn = 0;; ++turn) {
        while (state_->turn.load(std::memory_order_acquire) <= turn) {
          if (state_->stop) return;
        }
        (*state_->work)(thread);
        state_->done.fetch_add(1, std::memory_order_release);
      }
    });
  }
}

Team::~Team() {
  state_->stop = true;
  for (std::thread& worker : state_->workers) worker.join();
}

double Team::seconds(const std::function<void(int thread)>& work) {
  using Clock = std::chrono::steady_clock;
  state_->work = &work;
  state_->done = 0;
  auto start = Clock::now();
  state_->turn.fetch_add(1, std::memory_order_release);
  work(0);
  while (state_->done.load(std::memory_order_acquire) < state_->threads - 1) {
  }
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace ingot::bench
