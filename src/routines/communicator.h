// SPDX-License-Identifier: Apache-2.0
// What a collective asks of the ranks of its group: one operation, from which all collectives are composed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/fork.h"

namespace ingot::core {

struct SentBlock {
  const std::byte* data = nullptr;
  size_t bytes = 0;
};
struct ReceivedBlock {
  std::byte* data = nullptr;
  size_t bytes = 0;
};

// What to do about INGOT-D350 to D352.
constexpr std::string_view advice_for_group(std::string_view code) {
  if (code == "INGOT-D351")
    return "all ranks run the same engines, with inputs of the same sizes, in the same order";
  if (code == "INGOT-D352") return "join a new group, and make a new context with it";
  return "the group is unusable now: join a new one, and make a new context with it";
}

// What the ranks compare before they exchange anything: all must be equal.
struct ExchangeTag {
  uint64_t program = 0;     // what the program's collectives are, BoundGroups::program
  uint64_t collective = 0;  // which of them, in which phase, and what it does with which dtype
  uint64_t elements = 0;    // of each rank's tensor
};

// What a library of a device keeps for a group: made once for each device.
class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;
  virtual void detach() = 0;  // the group goes, and must not be used any more
};

// Collectives that this rank's device has begun and not done: how many there were, and what they were.
struct DeviceWork {
  uint64_t number = 0, history = 0;
  std::chrono::steady_clock::time_point since{};
};

// The connections of one rank to the others of its group. Used by one thread at a time.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Sends block r of `sent` to rank r, and fills block r of `received` with what rank r sends to this one;
  // this rank's own entries are ignored. DeviceError INGOT-D350 names the ranks that ended, or of which
  // nothing was heard within the deadline, INGOT-D351 those that run something else; INGOT-D352 from then on.
  virtual void exchange(std::span<const SentBlock> sent, std::span<const ReceivedBlock> received,
                        const ExchangeTag& tag) = 0;
  virtual uint64_t exchanges() const = 0;  // how many were begun
  virtual bool is_usable() const = 0;      // as far as its own exchanges tell
  // The same, after a look at whether another rank has reported a failure or ended: then this one ends too.
  virtual bool is_whole() = 0;
  // Between its exchanges: those that wait for this rank wait for another deadline from now on.
  virtual void say_alive() {}
  virtual std::chrono::milliseconds deadline() const { return std::chrono::milliseconds::max(); }
  // Called again and again, by any thread, while the device does such work: tells the others, and looks at
  // what they tell. If one ended, or nothing is heard of it within the deadline, or it does other work, the
  // group ends. Returns whether it is usable.
  virtual bool watch(const DeviceWork&) { return is_usable(); }
  virtual std::string failure() { return {}; }  // why it is not usable
  virtual std::string_view failure_code() { return "INGOT-D350"; }
  // Ends the group: the calls of the other ranks fail with `text`.
  virtual void leave(const std::string& text) = 0;

  // A run has the group to itself: other ranks could not tell the exchanges of two runs from each other.
  // In a child that was forked during a run it is free too, so that its exchange says why there is none.
  bool begin_run() { return !is_in_use_.exchange(true) || forks_ != fork_count(); }
  void end_run() { is_in_use_ = false; }

  // Null until a queue of the device opens the group; a run has it to itself.
  std::shared_ptr<DeviceGroup>& device_group(const void* device) { return device_groups_[device]; }
  // Counts as an exchange: the other ranks wait for the rest of the run.
  void count_device_work() { ++device_work_; }
  uint64_t device_work() const { return device_work_; }

 protected:
  // First of all in destructors of what can be used: device groups look at the group in threads of their own.
  void detach_devices() {
    for (auto& [device, group] : device_groups_)
      if (group != nullptr) group->detach();
  }

 private:
  std::map<const void*, std::shared_ptr<DeviceGroup>> device_groups_;
  std::atomic<uint64_t> device_work_ = 0;
  std::atomic<bool> is_in_use_ = false;
  const uint32_t forks_ = fork_count();  // when it was made
};

// The groups of a context, by the names that its program has for them.
struct BoundGroups {
  struct Bound {
    std::string name;
    std::shared_ptr<Communicator> group;
    bool on_device = false;  // its collectives that a device may do are done there
  };
  std::vector<Bound> groups;  // of its collectives
  uint64_t program = 0;
  std::map<std::string, int64_t, std::less<>> ranks;  // this rank's in each group that it names
};

}  // namespace ingot::core
