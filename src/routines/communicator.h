// SPDX-License-Identifier: Apache-2.0
// What a collective asks of the ranks of its group: one operation, from which all collectives are composed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
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

// What the ranks compare before they exchange anything: all must be equal.
struct ExchangeTag {
  uint64_t program = 0;     // what the program's collectives are, BoundGroups::program
  uint64_t collective = 0;  // which of them, in which phase, and what it does with which dtype
  uint64_t elements = 0;    // of each rank's tensor
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
  // Ends the group: the calls of the other ranks fail with `text`.
  virtual void leave(const std::string& text) = 0;

  // A run has the group to itself: other ranks could not tell the exchanges of two runs from each other.
  // In a child that was forked during a run it is free too, so that its exchange says why there is none.
  bool begin_run() { return !is_in_use_.exchange(true) || forks_ != fork_count(); }
  void end_run() { is_in_use_ = false; }

 private:
  std::atomic<bool> is_in_use_ = false;
  const uint32_t forks_ = fork_count();  // when it was made
};

// The groups of a context, by the names that its program has for them.
struct BoundGroups {
  struct Bound {
    std::string name;
    std::shared_ptr<Communicator> group;
  };
  std::vector<Bound> groups;
  uint64_t program = 0;
};

}  // namespace ingot::core
