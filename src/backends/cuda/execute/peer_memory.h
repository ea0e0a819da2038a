// SPDX-License-Identifier: Apache-2.0
// A rank's mailbox, which the GPUs of the other ranks write directly, and theirs (kernel_abi.h).
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/execute/device.h"
#include "backends/cuda/kernel_abi.h"

namespace ingot::core::cuda {

// How another rank finds a mailbox, as sent between ranks.
struct PeerHandle {
  char machine[40] = {};                                // since it was started; "": has none
  uint64_t process = 0;                                 // a number of its own
  int32_t device = 0;                                   // of that process
  IpcHandle memory = {};                                // for other processes of the machine
  const std::shared_ptr<std::byte>* mailbox = nullptr;  // in its own process
};

// How many the kernel takes, for an operand of so many bytes.
constexpr uint32_t peer_blocks(size_t bytes) {
  constexpr size_t kBlock = kPeerLine * kPeerThreads;
  return static_cast<uint32_t>(std::min<size_t>((bytes + kBlock - 1) / kBlock, kMostPeerBlocks));
}

class PeerMemory {
 public:
  // A mailbox of this rank, empty. Null, with the reason, if this machine cannot share it.
  static std::unique_ptr<PeerMemory> make(Device& device, std::string& reason);
  PeerMemory(Device& device, std::shared_ptr<std::byte> mailbox, std::shared_ptr<std::byte> is_over);

  const PeerHandle& handle() const { return handle_; }
  // Why the mailboxes of the ranks cannot be reached; "": they can. The other ranks' objects still exist.
  std::string connect(std::span<const PeerHandle> ranks, int rank);
  // Kernels that wait for other ranks return, now and from now on.
  void end();
  // Whether kernels do what follows a reduction, too.
  bool does_next() const { return does_next_; }
  // What a kernel gets, from kMailboxes on. Valid while this exists.
  const std::array<uint64_t, kPeerArguments>& arguments() const { return arguments_; }

 private:
  std::string map(const PeerHandle& other, std::shared_ptr<std::byte>& mailbox);

  Device& device_;
  const bool does_next_;
  std::shared_ptr<std::byte> mailbox_;
  std::shared_ptr<std::byte> is_over_;               // pinned
  std::vector<std::shared_ptr<std::byte>> reached_;  // of the other ranks
  PeerHandle handle_;
  std::array<uint64_t, kPeerArguments> arguments_{};
};

}  // namespace ingot::core::cuda
