// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "backends/fake/execute/call_list.h"
#include "backends/fake/execute/memory.h"
#include "backends/fake/execute/options.h"
#include "runtime/capture_cache.h"

namespace ingot::core::fake {

// Runs spans on a thread of its own, each call after a delay.
class FakeQueue final : public Queue {
 public:
  FakeQueue(std::shared_ptr<FakeMemory> memory, const Options& options, Counts& counts);
  ~FakeQueue() override;  // after all work is done

  // Throws what the device met in an earlier span, if that broke it: an InternalError.
  std::optional<CallFailure> run(const CallSpan& span) override;
  bool repeat(std::span<const uint64_t> identity, void* stream) override;
  std::optional<CallFailure> wait() override;
  // The host waits for each span with collectives: it uses the connections of the group, too.
  OpenedGroup open_group(Communicator& group, uint64_t program) override;

 private:
  struct Calls {
    std::vector<ListedCall> calls;
    bool has_collectives;
  };
  using Work = std::shared_ptr<const Calls>;
  std::optional<CallFailure> take_failure();
  Work work_of(const CallSpan& span);
  void add(Work work);
  void serve();
  void run_all(const std::vector<ListedCall>& calls);
  void run_call(const ListedCall& call);
  void run_copy(const ListedCall& call) const;
  void run_collective_of(const ListedCall& call) const;
  int64_t run_kernel(const ListedCall& call) const;
  void delay();

  const std::shared_ptr<FakeMemory> memory_;
  const Options options_;
  Counts& counts_;
  CaptureCache<CallList, Work> graphs_;
  uint64_t program_ = 0;     // of the groups, for messages
  std::minstd_rand random_;  // of the thread

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<Work> work_;  // the first one may be running
  bool ends_ = false;
  std::vector<CallFailure> failures_;  // that were not told yet
  std::exception_ptr broken_;          // why no call runs any more
  std::thread thread_;
};

}  // namespace ingot::core::fake
