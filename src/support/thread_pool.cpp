// SPDX-License-Identifier: Apache-2.0
#include "support/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/error.h"
#include "support/fork.h"
#include "support/system_threads.h"
#include "support/wait_word.h"

namespace ingot::core {
namespace {

using Clock = std::chrono::steady_clock;

// The states of a worker's slot. The caller changes kIdle or kAsleep to kReady. Then either the worker
// changes it to kRunning, and to kIdle when done; or the caller, having finished its own part, takes the part
// back: kIdle again. So a worker that the system has descheduled delays nobody.
constexpr uint32_t kIdle = 0;     // the worker spins
constexpr uint32_t kAsleep = 1;   // the worker sleeps
constexpr uint32_t kReady = 2;    // there is a part to run
constexpr uint32_t kRunning = 3;  // the worker runs it
constexpr uint32_t kAwaited = 4;  // running, and the caller sleeps until it is done
constexpr uint32_t kStop = 5;

// A caller spins about as long as its own part takes: it has nothing better to do.
constexpr std::chrono::microseconds kCallerSpin{50};

struct Part {
  RangeTask task;
  int64_t begin;
  int64_t end;
};

// One worker's mailbox, on its own cache lines (two, since the prefetcher fetches pairs).
struct alignas(128) Slot {
  std::atomic<uint32_t> state{kIdle};
  Part part{};
};

// Spins until `done` holds or the time is over; the clock is read rarely.
template <typename Condition>
bool spin_until(Condition done, std::chrono::microseconds limit) {
  constexpr int kPausesPerLook = 64;
  if (done()) return true;
  if (limit.count() == 0) return false;
  const Clock::time_point end = Clock::now() + limit;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      spin_pause();
      if (done()) return true;
    }
  } while (Clock::now() < end);
  return false;
}

bool exchange_if(Slot& slot, uint32_t expected, uint32_t desired) {
  return slot.state.compare_exchange_strong(expected, desired, std::memory_order_acq_rel);
}

void run(const Part& part, int worker) { part.task.call(part.task.context, part.begin, part.end, worker); }

// Waits for a part and claims it; false when the pool ends.
bool await_work(Slot& slot, std::chrono::microseconds spin) {
  while (true) {
    uint32_t state = kIdle;
    const auto has_news = [&] { return (state = slot.state.load(std::memory_order_acquire)) != kIdle; };
    if (!spin_until(has_news, spin) && exchange_if(slot, kIdle, kAsleep)) {
      while (slot.state.load(std::memory_order_acquire) == kAsleep) sleep_while(slot.state, kAsleep);
    }
    if (exchange_if(slot, kReady, kRunning)) return true;
    if (slot.state.load(std::memory_order_acquire) == kStop) return false;
  }
}

void work(Slot& slot, int worker, std::chrono::microseconds spin) {
  while (await_work(slot, spin)) {
    run(slot.part, worker);
    if (slot.state.exchange(kIdle, std::memory_order_acq_rel) == kAwaited) wake(slot.state);
  }
}

void post(Slot& slot, uint32_t state) {
  if (slot.state.exchange(state, std::memory_order_acq_rel) == kAsleep) wake(slot.state);
}

// Returns when the part is done, by the worker or by the caller.
void finish(Slot& slot, int worker) {
  if (exchange_if(slot, kReady, kIdle)) return run(slot.part, worker);
  const auto is_done = [&] {
    const uint32_t state = slot.state.load(std::memory_order_acquire);
    return state != kRunning && state != kAwaited;
  };
  if (spin_until(is_done, kCallerSpin)) return;
  if (!exchange_if(slot, kRunning, kAwaited)) return;
  while (!is_done()) sleep_while(slot.state, kAwaited);
}

template <typename Function>
void start_or_release(std::atomic<bool>& held, Function start) {
  try {
    start();
  } catch (...) {
    held.store(false, std::memory_order_release);
    throw;
  }
}

}  // namespace

// The threads that a pool has in one process.
struct ThreadPool::State {
  const uint32_t process = fork_count();
  std::vector<Slot> slots;           // of workers 1, 2, ...; the caller is worker 0
  std::vector<std::thread> workers;  // in the same order; none until they are started
  std::atomic<bool> started = false;
  std::atomic<bool> held = false;
  std::unique_ptr<State>
      inherited;  // state of the parent process before a fork; its threads do not exist here

  explicit State(int threads) : slots(static_cast<size_t>(threads) - 1) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (process != fork_count()) {
      for (std::thread& worker : workers)
        std::construct_at(&worker);  // discarded: there is no thread to join
      workers.clear();
    }
    stop();
  }

  // Worker number of the calling thread, for tasks that run on it alone.
  int current_worker() const {
    if (!started.load(std::memory_order_acquire)) return 0;
    const auto found = std::ranges::find(workers, std::this_thread::get_id(), &std::thread::get_id);
    return found == workers.end() ? 0 : static_cast<int>(found - workers.begin()) + 1;
  }

  void start(std::chrono::microseconds spin);

  void stop() {
    for (size_t i = 0; i < workers.size(); ++i) {
      post(slots[i], kStop);
      workers[i].join();
    }
    workers.clear();
  }
};

// All or none.
void ThreadPool::State::start(std::chrono::microseconds spin) {
  const BlockedSignals blocked;
  try {
    workers.reserve(slots.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      Slot& slot = slots[i];
      slot.state.store(kIdle, std::memory_order_relaxed);
      const int worker = static_cast<int>(i) + 1;
      workers.emplace_back([&slot, worker, spin] { work(slot, worker, spin); });
      name_thread(workers.back(), "ingot-" + std::to_string(worker));
    }
    started.store(true, std::memory_order_release);
  } catch (const std::system_error& error) {
    stop();
    throw DeviceError("INGOT-D003", std::string("cannot start a thread: ") + error.what(),
                      "ask for fewer threads");
  } catch (...) {  // out of memory
    stop();
    throw;
  }
}

ThreadPool::ThreadPool(int threads, int spin_microseconds)
    : threads_(threads), spin_microseconds_(spin_microseconds) {
  invariant(threads >= 1 && spin_microseconds >= 0,
            "a pool has at least the caller, and its spin time is not negative");
  auto state = std::make_unique<State>(threads);
  state->start(std::chrono::microseconds(spin_microseconds));
  state_ = state.release();
}

ThreadPool::~ThreadPool() { delete state_.load(); }

int ThreadPool::threads() const { return threads_; }

// No lock: the thread that forked may have held it. Inherited states are kept, as other threads of this
// process may be reading them.
ThreadPool::State& ThreadPool::state_of_this_process() {
  State* state = state_.load(std::memory_order_acquire);
  while (state->process != fork_count()) [[unlikely]] {
    auto own = std::make_unique<State>(threads_);
    own->inherited.reset(state);
    if (state_.compare_exchange_strong(state, own.get(), std::memory_order_acq_rel)) return *own.release();
    own->inherited.release();
  }
  return *state;
}

void ThreadPool::parallel_for(int64_t count, int64_t grain, RangeTask task) {
  invariant(grain > 0, "a grain holds at least one index");
  if (count <= 0) return;
  const int64_t grains = count / grain + (count % grain != 0 ? 1 : 0);
  const int64_t parts = std::min<int64_t>(threads(), grains);
  State& state = state_of_this_process();
  if (parts == 1 || state.held.exchange(true, std::memory_order_acquire)) {
    return task.call(task.context, 0, count, state.current_worker());
  }
  if (!state.started.load(std::memory_order_relaxed)) [[unlikely]]
    start_or_release(state.held, [&] { state.start(std::chrono::microseconds(spin_microseconds_)); });
  // The first `grains % parts` parts get one grain more.
  const int64_t share = grains / parts;
  const int64_t longer = grains % parts;
  const auto bound = [&](int64_t part) {
    const int64_t before = share * part + std::min(part, longer);
    return before == grains ? count : before * grain;
  };
  const auto workers = std::span(state.slots).first(static_cast<size_t>(parts) - 1);
  for (size_t i = 0; i < workers.size(); ++i) {
    const auto part = static_cast<int64_t>(i) + 1;
    workers[i].part = {task, bound(part), bound(part + 1)};
    post(workers[i], kReady);
  }
  task.call(task.context, 0, bound(1), 0);
  for (size_t i = 0; i < workers.size(); ++i) finish(workers[i], static_cast<int>(i) + 1);
  state.held.store(false, std::memory_order_release);
}

}  // namespace ingot::core
