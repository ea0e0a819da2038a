// SPDX-License-Identifier: Apache-2.0
#include "backends/fake/execute/collective.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <string_view>

#include "routines/communicator.h"
#include "routines/reduce_ranks.h"
#include "support/hash.h"

namespace ingot::core::fake {
namespace {

using Kind = DeviceCollective::Kind;
constexpr size_t kFixedWords = 8;

std::string_view name_of(DeviceCollective::Reduction reduction) {
  return std::ranges::find(kReductions, reduction, [](const auto& row) { return row.second; })->first;
}

size_t total(std::span<const size_t> bytes) { return std::accumulate(bytes.begin(), bytes.end(), size_t{0}); }

size_t ranks_of(const DeviceCollective& own) {
  return own.group == nullptr ? 1 : static_cast<size_t>(own.group->size());
}

// The bytes of the operand that rank `rank` needs.
std::span<const std::byte> part_for(const DeviceCollective& own, const std::byte* from, size_t rank) {
  const size_t share = own.bytes / ranks_of(own);
  if (own.kind == Kind::kReduceScatter) return {from + share * rank, share};
  if (own.kind != Kind::kAllToAll) return {from, own.bytes};
  return {from + total(std::span(own.sent).first(rank)), own.sent[rank]};
}

// What all ranks have for this one, in their order.
std::vector<std::vector<std::byte>> gather(const DeviceCollective& own, uint64_t program,
                                           const std::byte* from) {
  const auto rank = static_cast<size_t>(own.group->rank());
  std::vector<std::vector<std::byte>> parts(ranks_of(own));
  std::vector<SentBlock> sent;
  std::vector<ReceivedBlock> received;
  const auto mine = part_for(own, from, rank);
  for (size_t other = 0; other < parts.size(); ++other) {
    const auto part = part_for(own, from, other);
    sent.push_back({part.data(), part.size()});
    parts[other].resize(own.kind == Kind::kAllToAll ? own.received[other] : mine.size());
    received.push_back({parts[other].data(), parts[other].size()});
  }
  parts[rank].assign(mine.begin(), mine.end());
  const char what[] = {static_cast<char>(own.kind), static_cast<char>(own.reduction),
                       static_cast<char>(own.dtype), static_cast<char>(own.source)};
  own.group->exchange(sent, received, {program, short_hash({what, sizeof(what)}), own.elements});
  return parts;
}

void copy_bytes(std::byte* to, std::span<const std::byte> from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace

std::vector<int64_t> words_of(const DeviceCollective& own) {
  std::vector<int64_t> words = {static_cast<int64_t>(own.kind),
                                static_cast<int64_t>(own.reduction),
                                static_cast<int64_t>(own.dtype),
                                reinterpret_cast<int64_t>(own.group),
                                own.source,
                                static_cast<int64_t>(own.elements),
                                static_cast<int64_t>(own.bytes),
                                static_cast<int64_t>(own.sent.size())};
  words.insert(words.end(), own.sent.begin(), own.sent.end());
  words.insert(words.end(), own.received.begin(), own.received.end());
  return words;
}

DeviceCollective collective_of(std::span<const int64_t> words) {
  const auto by_rank = words.subspan(kFixedWords);
  const auto sent = by_rank.first(static_cast<size_t>(words[7]));
  const auto received = by_rank.subspan(sent.size());
  return {.kind = static_cast<Kind>(words[0]),
          .reduction = static_cast<DeviceCollective::Reduction>(words[1]),
          .dtype = static_cast<DType>(words[2]),
          .group = reinterpret_cast<Communicator*>(words[3]),
          .source = static_cast<int>(words[4]),
          .elements = static_cast<size_t>(words[5]),
          .bytes = static_cast<size_t>(words[6]),
          .sent = {sent.begin(), sent.end()},
          .received = {received.begin(), received.end()}};
}

size_t operand_bytes(const DeviceCollective& own) {
  return own.kind == Kind::kAllToAll && own.group != nullptr ? total(own.sent) : own.bytes;
}

size_t result_bytes(const DeviceCollective& own) {
  if (own.kind == Kind::kAllToAll && own.group != nullptr) return total(own.received);
  if (own.kind == Kind::kAllGather) return own.bytes * ranks_of(own);
  return own.kind == Kind::kReduceScatter ? own.bytes / ranks_of(own) : own.bytes;
}

void run_collective(const DeviceCollective& own, uint64_t program, const std::byte* from, std::byte* to) {
  if (own.group == nullptr) return copy_bytes(to, {from, own.bytes});
  const std::vector<std::vector<std::byte>> parts = gather(own, program, from);
  if (own.kind == Kind::kBroadcast) return copy_bytes(to, parts[static_cast<size_t>(own.source)]);
  if (own.kind == Kind::kAllGather || own.kind == Kind::kAllToAll) {
    for (const auto& part : parts) {
      copy_bytes(to, part);
      to += part.size();
    }
    return;
  }
  std::vector<const std::byte*> each;
  for (const auto& part : parts) each.push_back(part.data());
  routines::reduce_ranks(name_of(own.reduction), own.dtype, each, own.elements, to);
}

}  // namespace ingot::core::fake
