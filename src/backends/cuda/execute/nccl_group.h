// SPDX-License-Identifier: Apache-2.0
// The communicator of NCCL of a group of ranks on one GPU, and a thread that watches its work: when a rank
// ends or hangs, the work of all ends.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>

#include "backends/cuda/execute/device.h"
#include "backends/cuda/execute/nccl.h"
#include "backends/cuda/execute/nccl_meeting.h"
#include "backends/cuda/execute/peer_memory.h"
#include "routines/communicator.h"

namespace ingot::core::cuda {

// A number for what was done, in order.
constexpr uint64_t extended_history(uint64_t history, uint64_t next) {
  return (history ^ next) * 0x9E3779B97F4A7C15;
}

class NcclGroup final : public DeviceGroup {
 public:
  // All ranks of `group` call it. One for each group and GPU; on all ranks alike without a communicator, if
  // one of them cannot have it: see `reason`. DeviceError INGOT-D350 or D351 if a rank is missing.
  static std::shared_ptr<NcclGroup> open(Communicator& group, Device& device, uint64_t program);
  NcclGroup(Communicator& group, Device& device) : group_(&group), device_(device) {}
  ~NcclGroup() override;
  const std::string& reason() const { return reason_; }
  void detach() override;

  // Before work with collectives is enqueued for the first time: all ranks have to be about to do the same.
  void agree(const ExchangeTag& tag);
  // Whether the GPUs of the ranks do it themselves, by the kernel that it names: on all ranks alike.
  bool is_by_peers(const DeviceCollective& collective) const;
  const PeerMemory& peers() const { return *peers_; }
  const std::string& peer_reason() const { return peer_reason_; }  // why there are none
  // Enqueues a collective, also while the stream is captured.
  void enqueue(const DeviceCollective& collective, const void* from, void* to, Handle stream);
  // Before work with collectives is enqueued on `stream`, which is not captured: that of other streams comes
  // first, since the ranks use their mailboxes in one order.
  void follow(Handle stream);
  // Work with collectives has been enqueued on `stream`, which is not captured: watches it to its end.
  // `history` says what it is.
  void watch(Handle stream, uint64_t history);
  // DeviceError that names the rank after a failure: INGOT-D350 or D351 once, then D352.
  void require_intact();
  bool has_failed();

 private:
  struct Watched {
    Handle event = nullptr;
    bool is_recorded = false;
    DeviceWork work;
  };

  void meet(uint64_t program);
  std::string connect_peers(const std::vector<Introduction>& all);
  bool start(const NcclId& id);
  int wait_for(int result);
  void finish(int result, const char* call);
  void end_for(int result, const char* call);
  void exchange_blocks(const DeviceCollective& collective, const void* from, void* to, Handle stream);
  [[noreturn]] void throw_failure();
  void run_watcher();
  void look(std::unique_lock<std::mutex>& lock);
  bool has_finished();
  bool finishes_alone(std::unique_lock<std::mutex>& lock);
  void end(std::string_view code, const std::string& text);
  void abort();
  std::string problem_of(int result) const;

  Communicator* group_;  // null once it is gone
  Device& device_;
  const Nccl* nccl_ = nullptr;
  Handle communicator_ = nullptr;
  std::string reason_, peer_reason_;
  std::unique_ptr<PeerMemory> peers_;    // null if a rank cannot reach another's
  std::unordered_set<uint64_t> agreed_;  // what all ranks are known to have
  const uint32_t forks_ = fork_count();

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  Watched watched_[2];       // the first is looked at, the second is of the latest work
  DeviceWork work_;          // the latest
  Handle stream_ = nullptr;  // of the latest
  std::string code_, text_;  // of a failure
  bool is_told_ = false, is_over_ = false, is_asleep_ = false;
  std::thread watcher_;
};

}  // namespace ingot::core::cuda
