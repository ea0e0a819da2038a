// SPDX-License-Identifier: Apache-2.0
// What the ranks of a group tell each other before they make a communicator of NCCL, so that all decide
// alike.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/execute/device.h"
#include "backends/cuda/execute/nccl.h"
#include "backends/cuda/execute/peer_memory.h"
#include "routines/communicator.h"

namespace ingot::core::cuda {

struct Introduction {
  int32_t version = 0;     // of NCCL
  char gpu[16] = {};       // its unique number
  NcclId id = {};          // of the communicator; of rank 0
  char refusal[236] = {};  // why this rank cannot; "": it can
  PeerHandle peer;         // its mailbox; without a machine: it has none, and the reason is next
  char peer_refusal[128] = {};

  void refuse(const std::string& reason);
  void refuse_peers(const std::string& reason);
};

// `nccl`: null if it is `missing`.
Introduction introduce(const Device& device, const Nccl* nccl, const char* missing);

class NcclMeeting {
 public:
  NcclMeeting(Communicator& group, uint64_t program) : group_(group), program_(program) {}
  std::vector<Introduction> exchange(const Introduction& own);  // by rank

 private:
  Communicator& group_;
  const uint64_t program_;
};

// "rank 1: ..."; "" if nobody refuses.
std::string first_refusal(const std::vector<Introduction>& ranks);
// The same of why ranks cannot reach each other's memory.
std::string first_peer_refusal(const std::vector<Introduction>& ranks);
// Also: NCCL of other versions, or ranks that share a GPU.
std::string reason_against(const std::vector<Introduction>& ranks);

}  // namespace ingot::core::cuda
