// SPDX-License-Identifier: Apache-2.0
// A store of entries beneath the disk: an object of the caller, or a server. It knows bytes by key and
// nothing else: `CacheUse` seals, checks and compares them, so that no tier can pass off another entry, or a
// damaged one.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "cache/memory_store.h"
#include "support/hash.h"

namespace ingot::core {

using ReportProblem = std::function<void(const std::string& line)>;

// The right to make one entry, among all that share a tier. It ends with the object, or soon after the
// machine that has it fails.
class TierLease {
 public:
  TierLease() = default;
  virtual ~TierLease() = default;
  TierLease(const TierLease&) = delete;
  TierLease& operator=(const TierLease&) = delete;
};

// Thread-safe. Every failure is a miss, and reported. Every call ends by a deadline of the tier's.
class EntryTier {
 public:
  EntryTier() = default;
  virtual ~EntryTier() = default;
  EntryTier(const EntryTier&) = delete;
  EntryTier& operator=(const EntryTier&) = delete;

  virtual std::string name() const = 0;                                   // for messages
  virtual Blob find(const Digest& key, const ReportProblem& report) = 0;  // sealed; null: a miss
  virtual void put(const Digest& key, Bytes sealed, const ReportProblem& report) = 0;

  struct Waited {
    std::unique_ptr<TierLease> lease;  // null: another has it, or the tier has none
    bool has_waited = false;           // others may have made the entry meanwhile
  };
  // Waits while another has the lease and has not made the entry, at most for `patience`; calls wait() now
  // and then, whose exceptions pass through.
  virtual Waited lease(const Digest&, std::chrono::milliseconds /*patience*/,
                       const std::function<void()>& /*wait*/, const ReportProblem&) {
    return {};
  }
};

}  // namespace ingot::core
