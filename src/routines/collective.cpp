// SPDX-License-Identifier: Apache-2.0
// Collectives on the host: exchanges of blocks, and reductions in the order of the ranks, so that all ranks
// have the same bits, in each run.
#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "routines/collective_rows.h"
#include "routines/communicator.h"
#include "routines/reduce_ranks.h"
#include "routines/routines.h"
#include "support/error.h"
#include "support/hash.h"

namespace ingot::core::routines {
namespace {

// Below this, all ranks send everything to all: one exchange instead of two.
constexpr size_t kShortMessage = size_t{32} << 10;

// One call of a collective, on dense tensors.
class Collective {
 public:
  Collective(const RoutineCall& call, std::string_view name) : call_(call), name_(name) {
    require_fit(call.inputs.size() == 1 && call.outputs.size() == 1 && input().dtype == output().dtype &&
                    bit_width(input().dtype) >= 8,
                name);
    find_group();
    const auto ranks = attribute<int64_t>(call, "ranks");
    if (ranks != 0 && ranks != size())
      throw UserError("INGOT-U352", fmt::format("{}: group '{}' has {} ranks, the program is for {}", name,
                                                group_name(), size(), ranks));
  }

  const TensorView& input() const { return call_.inputs[0]; }
  const TensorView& output() const { return call_.outputs[0]; }
  int rank() const { return group_ == nullptr ? 0 : group_->rank(); }
  int size() const { return group_ == nullptr ? 1 : group_->size(); }
  const std::string& group_name() const { return attribute<std::string>(call_, "group"); }

  // All ranks have the same `elements`. `way`: what else they have to agree on.
  void exchange(std::span<const SentBlock> sent, std::span<const ReceivedBlock> received, size_t elements,
                std::string_view way) const {
    if (group_ == nullptr) return;
    const std::string what = fmt::format("{} {} {}", name_, name(input().dtype), way);
    group_->exchange(sent, received, {call_.groups->program, short_hash(what), elements});
  }

 private:
  void find_group() {
    if (call_.groups != nullptr) {
      const auto found = std::ranges::find(call_.groups->groups, group_name(), &BoundGroups::Bound::name);
      if (found != call_.groups->groups.end()) group_ = found->group.get();
    }
    if (group_ == nullptr && attribute<int64_t>(call_, "ranks") != 1)
      throw UserError("INGOT-U350",
                      fmt::format("{}: no group of ranks is bound to '{}'", name_, group_name()),
                      "bind one when the context is made (docs/ranks.md)");
  }

  const RoutineCall& call_;
  std::string_view name_;
  Communicator* group_ = nullptr;  // null: a group of one rank
};

size_t width_of(DType dtype) { return static_cast<size_t>(bit_width(dtype)) / 8; }  // in bytes
size_t element_count(const TensorView& view) {
  size_t count = 1;
  for (const int64_t size : view.shape) count *= static_cast<size_t>(size);
  return count;
}
size_t bytes_of(const TensorView& view) { return element_count(view) * (width_of(view.dtype)); }

void copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

// Elements [first, last) of rank `part` of `parts`.
struct Share {
  size_t first, last;
  size_t count() const { return last - first; }
};
Share share_of(size_t elements, size_t part, size_t parts) {
  const size_t each = (elements + parts - 1) / parts;
  return {std::min(part * each, elements), std::min((part + 1) * each, elements)};
}

// Sends each rank its share of `elements`, and reduces this rank's own into `result`.
void reduce_share(const RoutineCall& call, const Collective& own, std::span<const Share> shares,
                  std::byte* result) {
  const size_t width = width_of(own.input().dtype);
  const auto ranks = static_cast<size_t>(own.size()), rank = static_cast<size_t>(own.rank());
  const size_t mine = shares[rank].count() * width;
  const WorkingItems<std::byte> memory(call, std::max<size_t>(mine * (ranks - 1), 1));
  std::vector<SentBlock> sent(ranks);
  std::vector<ReceivedBlock> received(ranks);
  std::vector<const std::byte*> parts(ranks);
  std::byte* next = memory.items().data();
  for (size_t r = 0; r < ranks; ++r) {
    const std::byte* data = own.input().data + shares[r].first * width;
    parts[r] = r == rank ? data : next;
    if (r == rank) continue;
    sent[r] = {data, shares[r].count() * width};
    received[r] = {next, mine};
    next += mine;
  }
  const auto& reduction = attribute<std::string>(call, "reduction");
  own.exchange(sent, received, element_count(own.input()), "reduce " + reduction);
  reduce_ranks(reduction, own.input().dtype, parts, shares[rank].count(), result);
}

// Each rank sends the same block to all, and gets theirs.
void share_blocks(const Collective& own, const SentBlock& block, std::span<const ReceivedBlock> received) {
  own.exchange(std::vector<SentBlock>(received.size(), block), received, element_count(own.input()), "share");
}

size_t dim0(const TensorView& view, std::string_view routine) {
  require_fit(!view.shape.empty(), routine);
  return static_cast<size_t>(view.shape[0]);
}

}  // namespace

void all_reduce(const RoutineCall& call) {
  const Collective own(call, "all_reduce");
  require_fit(own.input().shape == own.output().shape, "all_reduce");
  const size_t elements = element_count(own.input()), width = width_of(own.input().dtype);
  const auto ranks = static_cast<size_t>(own.size()), rank = static_cast<size_t>(own.rank());
  std::vector<Share> shares;
  const bool is_short = elements * width <= kShortMessage;
  for (size_t r = 0; r < ranks; ++r)
    shares.push_back(is_short ? Share{0, elements} : share_of(elements, r, ranks));
  std::byte* const result = own.output().data;
  reduce_share(call, own, shares, result + shares[rank].first * width);
  if (is_short) return;
  std::vector<ReceivedBlock> received;
  for (const Share& share : shares) received.push_back({result + share.first * width, share.count() * width});
  share_blocks(own, {received[rank].data, received[rank].bytes}, received);
}

void reduce_scatter(const RoutineCall& call) {
  const Collective own(call, "reduce_scatter");
  const auto ranks = static_cast<size_t>(own.size());
  const size_t elements = element_count(own.input());
  require_fit(dim0(own.input(), "reduce_scatter") % ranks == 0, "reduce_scatter");
  require_fit(element_count(own.output()) * ranks == elements, "reduce_scatter");
  std::vector<Share> shares;
  for (size_t r = 0; r < ranks; ++r) shares.push_back({elements / ranks * r, elements / ranks * (r + 1)});
  reduce_share(call, own, shares, own.output().data);
}

void all_gather(const RoutineCall& call) {
  const Collective own(call, "all_gather");
  const auto ranks = static_cast<size_t>(own.size()), rank = static_cast<size_t>(own.rank());
  const size_t bytes = bytes_of(own.input());
  require_fit(bytes_of(own.output()) == bytes * ranks, "all_gather");
  std::vector<ReceivedBlock> received;
  for (size_t r = 0; r < ranks; ++r) received.push_back({own.output().data + r * bytes, bytes});
  copy_bytes(received[rank].data, own.input().data, bytes);
  share_blocks(own, {own.input().data, bytes}, received);
}

void all_to_all(const RoutineCall& call) {
  const Collective own(call, "all_to_all");
  const auto ranks = static_cast<size_t>(own.size()), rank = static_cast<size_t>(own.rank());
  const size_t sent_rows = dim0(own.input(), "all_to_all"), received_rows = dim0(own.output(), "all_to_all");
  const std::vector<size_t> to = rows_by_rank(attribute<std::string>(call, "sent"), sent_rows, ranks);
  const std::vector<size_t> from =
      rows_by_rank(attribute<std::string>(call, "received"), received_rows, ranks);
  TensorView row = own.input();
  row.shape[0] = 1;
  const size_t width = bytes_of(row);
  require_fit(bytes_of(own.output()) == received_rows * width && to[rank] == from[rank], "all_to_all");
  std::vector<SentBlock> sent;
  std::vector<ReceivedBlock> received;
  const std::byte* source = own.input().data;
  std::byte* target = own.output().data;
  for (size_t r = 0; r < ranks; ++r) {
    sent.push_back({source, to[r] * width});
    received.push_back({target, from[r] * width});
    source += to[r] * width;
    target += from[r] * width;
  }
  copy_bytes(received[rank].data, sent[rank].data, sent[rank].bytes);
  own.exchange(sent, received, width / width_of(own.input().dtype), "rows");
}

void broadcast(const RoutineCall& call) {
  const Collective own(call, "broadcast");
  const auto source = attribute<int64_t>(call, "source");
  if (source < 0 || source >= own.size())
    throw UserError("INGOT-U352",
                    fmt::format("broadcast: group '{}' has no rank {}", own.group_name(), source));
  const size_t bytes = bytes_of(own.input());
  require_fit(bytes_of(own.output()) == bytes, "broadcast");
  std::vector<SentBlock> sent(static_cast<size_t>(own.size()));
  std::vector<ReceivedBlock> received(sent.size());
  if (own.rank() == source) {
    copy_bytes(own.output().data, own.input().data, bytes);
    std::ranges::fill(sent, SentBlock{own.input().data, bytes});
  } else {
    received[static_cast<size_t>(source)] = {own.output().data, bytes};
  }
  own.exchange(sent, received, element_count(own.input()), fmt::format("from {}", source));
}

}  // namespace ingot::core::routines
