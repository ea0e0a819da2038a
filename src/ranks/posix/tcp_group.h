// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "ranks/group.h"
#include "ranks/posix/connection.h"
#include "ranks/posix/wire.h"

namespace ingot::core {

// Each rank is connected to each other. An exchange moves all blocks at once, in both directions, so that no
// order of calls can lock up.
class TcpGroup final : public Communicator {
 public:
  TcpGroup(const GroupOptions& options, std::vector<Connection> connections);
  ~TcpGroup() override { detach_devices(); }

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  void exchange(std::span<const SentBlock> sent, std::span<const ReceivedBlock> received,
                const ExchangeTag& tag) override;
  uint64_t exchanges() const override { return sequence_; }
  bool is_usable() const override;
  bool is_whole() override;
  void say_alive() override;
  bool watch(const DeviceWork& work) override;
  std::string failure() override;
  std::string_view failure_code() override;
  std::chrono::milliseconds deadline() const override { return options_.deadline; }
  void leave(const std::string& text) override;

 private:
  // What one exchange still has to move, to and from one rank.
  struct Peer {
    MessageHeader sent_header, received_header;
    Transfer<const std::byte> header_out, out;
    Transfer<std::byte> header_in, in;
    TimeLimit limit{std::chrono::milliseconds(0)};  // to hear from it
    bool is_checked = false;                        // received_header
    bool is_watched = true;                         // for a failure that it reports after its block
    bool is_sending() const { return header_out.left + out.left > 0; }
    bool is_receiving() const { return !is_checked || in.left > 0; }
  };

  // What a rank last said of itself.
  struct Sign {
    TimeLimit::Clock::time_point at{}, at_this_work{};
    uint64_t number = 0, history = 0;  // DeviceWork
    bool is_in_exchange = false;       // that this rank has not begun
  };

  void start(std::span<const SentBlock> sent, std::span<const ReceivedBlock> received,
             const ExchangeTag& tag);
  void forget_exchange();
  void wait();
  TimeLimit require_in_time(const std::vector<int>& open);
  void advance(int rank, short events);
  void send_to(int rank);
  void receive_from(int rank);
  Progress look_after(int rank);
  void look_after_all();
  void look_for_ends();
  void tell_alive(const MessageHeader& header);
  void take_sign(int rank, const MessageHeader& header);
  void compare_work(const DeviceWork& work);
  void check_header(int rank);
  std::vector<int> unfinished() const;
  void require_own_process() const;
  void require_usable() const;
  void read_failure(int rank);
  [[noreturn]] void fail(std::string_view code, const std::string& text, const std::vector<int>& culprits);
  bool tell(int rank, int code, const std::string& text, const TimeLimit& limit);
  void tell_others(int code, const std::string& text, const std::vector<int>& culprits);
  Connection& connection(int rank) { return connections_[static_cast<size_t>(rank)]; }
  Peer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }

  const GroupOptions options_;
  const uint32_t forks_;
  std::vector<Connection> connections_;
  std::mutex mutex_;  // contexts of several threads may share a group
  std::vector<Peer> peers_;
  std::vector<Sign> signs_;
  std::vector<pollfd> files_;
  std::vector<int> ranks_of_files_;
  std::atomic<uint64_t> sequence_ = 0;
  std::string failure_;  // why the group is unusable
  std::string_view failure_code_ = "INGOT-D350";
  std::atomic<bool> has_failed_ = false;  // for threads that must not wait for an exchange
};

}  // namespace ingot::core
