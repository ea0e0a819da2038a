// SPDX-License-Identifier: Apache-2.0
// Streams of the driver that computes nothing: a thread each, which does what was added in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "fake_peers.h"

namespace {  // as what peers run

using Work = std::function<void()>;

// What a handle points to. `device`: that of the context in which it was made.
struct Object {
  int device;
  PeerKernel kernel;  // of functions that compute something
};
struct Event : Object {
  std::shared_ptr<std::atomic<bool>> done;  // of the last record
};
struct Graph : Object {
  std::vector<Work> work;
};
struct Stream : Object {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> waiting;
  bool is_running = false, has_thread = false;
  Graph* captured = nullptr;

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return !waiting.empty(); });
      const Work next = std::move(waiting.front());
      waiting.pop_front();
      is_running = true;
      lock.unlock();
      next();
      lock.lock();
      is_running = false;
      changed.notify_all();
    }
  }
  void add(Work work) {
    if (captured != nullptr) return captured->work.push_back(std::move(work));
    const std::scoped_lock lock(mutex);
    waiting.push_back(std::move(work));
    if (!has_thread) std::thread([this] { run(); }).detach();
    has_thread = true;
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return waiting.empty() && !is_running; });
  }
};

}  // namespace
