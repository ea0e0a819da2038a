// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "backends/fake/execute/images.h"
#include "support/hash.h"

namespace ingot::core::fake {

// One call out of a list.
struct ListedCall {
  const Launch* launch;        // null: a copy or a collective, from buffers[0] to buffers[1]
  const LoadedKernel* kernel;  // null for copies
  std::vector<const void*> buffers;
  std::vector<int64_t> symbols;
  size_t bytes = 0;     // of a copy
  uint32_t latest = 0;  // of a copy beside the calls: position of the listed call that needs it; 0: none does
  std::optional<DeviceCollective> collective = {};
};

// Calls with everything taken from the caller, as one list of words: equal lists do the same work on the same
// addresses.
class CallList {
 public:
  void add(const KernelCall& call, const LoadedKernel* kernel);
  // `latest`: position in the list of the call that needs it.
  void add(const Prefetch& fetch, uint32_t latest);
  void add(const DeviceCollective& collective, std::span<void* const> buffers);
  std::vector<ListedCall> calls() const;
  bool has_collectives() const { return has_collectives_; }
  bool operator==(const CallList& other) const { return words_ == other.words_; }
  Checksum checksum() const { return core::checksum(std::as_bytes(std::span(words_))); }

 private:
  std::vector<uint64_t> words_;
  bool has_collectives_ = false;
};

}  // namespace ingot::core::fake
