// SPDX-License-Identifier: Apache-2.0
#include "support/background.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "support/fork.h"

namespace ingot::core {

// Of one process.
struct BackgroundWork::Queue {
  struct Piece {
    uint64_t bytes = 0;
    std::function<void()> work;
  };

  const uint32_t process = fork_count();
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Piece> pieces;  // the first one is at hand if there is a thread
  uint64_t bytes = 0;        // of all pieces
  bool is_over = false, has_thread = false;
  std::thread thread;

  bool add(Piece piece, uint64_t most) {
    const std::scoped_lock lock(mutex);
    if (!pieces.empty() && bytes + piece.bytes > most) return false;
    if (!has_thread && !start()) return false;
    bytes += piece.bytes;
    pieces.push_back(std::move(piece));
    changed.notify_all();
    return true;
  }

  void run() {
    std::unique_lock lock(mutex);
    while (!pieces.empty() && !is_over) {
      std::function<void()> work = std::move(pieces.front().work);
      lock.unlock();
      try {
        work();
      } catch (...) {  // NOLINT: nobody would hear of it
      }
      work = nullptr;  // what it holds goes before others hear that it is done
      lock.lock();
      bytes -= pieces.front().bytes;
      pieces.pop_front();
      changed.notify_all();
    }
    has_thread = false;
  }

  void end() {
    std::unique_lock lock(mutex);
    is_over = true;
    lock.unlock();
    if (thread.joinable()) thread.join();
  }

 private:
  // The thread waits for the lock, and finds the piece.
  bool start() {
    if (thread.joinable()) thread.join();  // it has left `run`
    try {
      thread = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      return false;
    }
    return has_thread = true;
  }
};

BackgroundWork::~BackgroundWork() {
  Queue* const queue = queue_.load();
  if (queue == nullptr || queue->process != fork_count()) return;  // a parent's: see below
  queue->end();
  delete queue;
}

bool BackgroundWork::add(uint64_t bytes, std::function<void()> work) {
  return queue_of_this_process().add({bytes, std::move(work)}, most_);
}

bool BackgroundWork::wait(std::chrono::milliseconds patience) {
  Queue& queue = queue_of_this_process();
  std::unique_lock lock(queue.mutex);
  return queue.changed.wait_for(lock, patience, [&] { return queue.pieces.empty(); });
}

size_t BackgroundWork::waiting() {
  Queue& queue = queue_of_this_process();
  const std::scoped_lock lock(queue.mutex);
  return queue.pieces.size();
}

// A parent's queue is left alone: its thread does not exist here, and may have held the lock.
BackgroundWork::Queue& BackgroundWork::queue_of_this_process() {
  Queue* queue = queue_.load(std::memory_order_acquire);
  while (queue == nullptr || queue->process != fork_count()) {
    auto own = std::make_unique<Queue>();
    if (queue_.compare_exchange_strong(queue, own.get(), std::memory_order_acq_rel)) return *own.release();
  }
  return *queue;
}

}  // namespace ingot::core
