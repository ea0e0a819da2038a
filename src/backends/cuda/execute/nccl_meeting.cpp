// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/nccl_meeting.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include <fmt/core.h>

#include "support/hash.h"

namespace ingot::core::cuda {
namespace {

std::string version_text(int32_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

// As much as has room.
void copy_text(std::string_view text, std::span<char> to) {
  const size_t length = std::min(text.size(), to.size() - 1);
  std::memcpy(to.data(), text.data(), length);
  to[length] = '\0';
}

template <size_t size>
std::string first_text(const std::vector<Introduction>& ranks, char (Introduction::*text)[size]) {
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if ((ranks[rank].*text)[0] != '\0') return fmt::format("rank {}: {}", rank, ranks[rank].*text);
  return {};
}

}  // namespace

void Introduction::refuse(const std::string& reason) { copy_text(reason, refusal); }
void Introduction::refuse_peers(const std::string& reason) { copy_text(reason, peer_refusal); }

Introduction introduce(const Device& device, const Nccl* nccl, const char* missing) {
  Introduction own;
  std::memcpy(own.gpu, device.unique_number().data(), sizeof(own.gpu));
  if (nccl == nullptr)
    own.refuse(missing);
  else
    own.version = nccl->number;
  return own;
}

std::vector<Introduction> NcclMeeting::exchange(const Introduction& own) {
  const auto ranks = static_cast<size_t>(group_.size());
  std::vector<Introduction> all(ranks);
  const std::vector<SentBlock> sent(ranks, {reinterpret_cast<const std::byte*>(&own), sizeof(own)});
  std::vector<ReceivedBlock> received;
  for (Introduction& each : all) received.push_back({reinterpret_cast<std::byte*>(&each), sizeof(each)});
  group_.exchange(sent, received, {program_, short_hash("collectives on GPUs"), 0});
  all[static_cast<size_t>(group_.rank())] = own;
  for (Introduction& each : all) {
    each.refusal[sizeof(each.refusal) - 1] = '\0';
    each.peer_refusal[sizeof(each.peer_refusal) - 1] = '\0';
  }
  return all;
}

std::string first_refusal(const std::vector<Introduction>& ranks) {
  return first_text(ranks, &Introduction::refusal);
}
std::string first_peer_refusal(const std::vector<Introduction>& ranks) {
  return first_text(ranks, &Introduction::peer_refusal);
}

std::string reason_against(const std::vector<Introduction>& ranks) {
  if (std::string refusal = first_refusal(ranks); !refusal.empty()) return refusal;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].version != ranks[0].version)
      return fmt::format("rank {} has NCCL {}, rank 0 has {}", rank, version_text(ranks[rank].version),
                         version_text(ranks[0].version));
    for (size_t other = 0; other < rank; ++other)
      if (std::memcmp(ranks[rank].gpu, ranks[other].gpu, sizeof(Introduction::gpu)) == 0)
        return fmt::format("ranks {} and {} are on the same GPU", other, rank);
  }
  return {};
}

}  // namespace ingot::core::cuda
