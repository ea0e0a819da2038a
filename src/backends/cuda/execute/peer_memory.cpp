// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/peer_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string_view>

#include <fmt/core.h>

namespace ingot::core::cuda {
namespace {

constexpr size_t kCountBytes = 256;  // after the mailbox

// Processes with other numbers for processes share a machine, so that a process needs one of its own.
uint64_t process_number() {
  static const uint64_t number = [] {
    std::random_device random;
    return uint64_t{random()} << 32 | random();
  }();
  return number;
}

// Empty where the system does not say.
std::string machine_name() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string name;
  std::getline(file, name);
  return name;
}

std::string_view wanted_use() {
  const char* const wanted = std::getenv("INGOT_PEER_MEMORY");
  return wanted == nullptr ? std::string_view() : wanted;
}

std::string problem(const Driver& driver, const char* call, int result) {
  const char* name = nullptr;
  driver.error_name(result, &name);
  return fmt::format("{} failed: {}", call, name == nullptr ? "unknown" : name);
}

}  // namespace

std::unique_ptr<PeerMemory> PeerMemory::make(Device& device, std::string& reason) {
  if (wanted_use() == "0") {
    reason = "INGOT_PEER_MEMORY is 0";
    return nullptr;
  }
  const Driver& driver = device.driver();
  const CurrentContext current = device.enter();
  auto made = std::make_unique<PeerMemory>(device, device.allocate(kMailboxBytes + kCountBytes),
                                           device.allocate_pinned(sizeof(int32_t)));
  const std::string machine = machine_name();
  const int result = driver.share_memory(&made->handle_.memory, address(made->mailbox_.get()));
  if (result != 0 || machine.empty()) {
    reason = machine.empty() ? "the system has no boot_id" : problem(driver, "cuIpcGetMemHandle", result);
    return nullptr;
  }
  std::memcpy(made->handle_.machine, machine.data(),
              std::min(machine.size(), sizeof(PeerHandle::machine) - 1));
  return made;
}

PeerMemory::PeerMemory(Device& device, std::shared_ptr<std::byte> mailbox, std::shared_ptr<std::byte> is_over)
    : device_(device),
      does_next_(wanted_use() != "sums"),
      mailbox_(std::move(mailbox)),
      is_over_(std::move(is_over)) {
  const std::vector<std::byte> zeros(kMailboxBytes + kCountBytes);
  device_.copy(mailbox_.get(), zeros.data(), zeros.size());
  std::memset(is_over_.get(), 0, sizeof(int32_t));
  handle_.process = process_number();
  handle_.device = device_.index();
  handle_.mailbox = &mailbox_;
}

std::string PeerMemory::connect(std::span<const PeerHandle> ranks, int rank) {
  if (ranks.size() > kMostPeers) return fmt::format("there are more than {} ranks", kMostPeers);
  for (size_t other = 0; other < ranks.size(); ++other) {
    if (std::strncmp(ranks[other].machine, handle_.machine, sizeof(PeerHandle::machine)) != 0)
      return fmt::format("rank {} is on another machine", other);
    std::shared_ptr<std::byte> mailbox = mailbox_;
    if (static_cast<int>(other) != rank) {
      if (std::string reason = map(ranks[other], mailbox); !reason.empty())
        return fmt::format("the GPU of rank {}: {}", other, reason);
      reached_.push_back(mailbox);
    }
    arguments_[kMailboxes + other] = address(mailbox.get());
  }
  arguments_[kPeerCounts] = address(mailbox_.get()) + kMailboxBytes;
  arguments_[kPeerIsOver] = address(is_over_.get());
  arguments_[kPeerRank] = static_cast<uint64_t>(rank);
  arguments_[kPeerRanks] = ranks.size();
  return {};
}

// Memory of this process is reached as it is, that of another one is mapped.
std::string PeerMemory::map(const PeerHandle& other, std::shared_ptr<std::byte>& mailbox) {
  constexpr int kAlreadyEnabled = 704;
  constexpr unsigned kEnablePeerAccess = 1;
  const Driver& driver = device_.driver();
  const CurrentContext current = device_.enter();
  if (other.process == handle_.process) {
    mailbox = *other.mailbox;
    if (other.device == handle_.device) return {};
    const int result = driver.enable_peer_access(Device::get(other.device).context(), 0);
    const bool is_reached = result == 0 || result == kAlreadyEnabled;
    return is_reached ? "" : problem(driver, "cuCtxEnablePeerAccess", result);
  }
  Address memory = 0;
  const int result = driver.open_shared_memory(&memory, other.memory, kEnablePeerAccess);
  if (result != 0) return problem(driver, "cuIpcOpenMemHandle", result);
  mailbox = {reinterpret_cast<std::byte*>(memory), [this_device = &device_](std::byte* data) {
               const CurrentContext own = this_device->enter_to_free();
               this_device->driver().close_shared_memory(address(data));
             }};
  return {};
}

void PeerMemory::end() { *reinterpret_cast<volatile int32_t*>(is_over_.get()) = 1; }

}  // namespace ingot::core::cuda
