// SPDX-License-Identifier: Apache-2.0
#include "ranks/signs_of_life.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "support/fork.h"
#include "support/system_threads.h"

namespace ingot::core {
namespace {

// The others may have shorter deadlines.
std::chrono::milliseconds period_of(const Communicator& group) {
  return std::clamp(group.deadline() / 5, std::chrono::milliseconds(1), std::chrono::milliseconds(200));
}

}  // namespace

struct SignsOfLife::Speaker {
  std::shared_ptr<Communicator> group;
  const uint32_t process = fork_count();
  std::mutex mutex;
  std::condition_variable ended;
  bool is_over = false;
  std::thread thread{};

  void run() {
    std::unique_lock lock(mutex);
    do {
      group->say_alive();
    } while (!ended.wait_for(lock, period_of(*group), [this] { return is_over; }));
  }

  void end() {
    {
      const std::scoped_lock lock(mutex);
      is_over = true;
    }
    ended.notify_all();
    thread.join();
  }
};

SignsOfLife::SignsOfLife(std::shared_ptr<Communicator> group) {
  auto speaker = std::make_unique<Speaker>(std::move(group));
  const BlockedSignals blocked;
  speaker->thread = std::thread([own = speaker.get()] { own->run(); });
  name_thread(speaker->thread, "ingot-alive");
  speaker_ = speaker.release();
}

SignsOfLife::~SignsOfLife() {
  if (speaker_->process != fork_count()) return;
  speaker_->end();
  delete speaker_;
}

}  // namespace ingot::core
