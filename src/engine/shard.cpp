// SPDX-License-Identifier: Apache-2.0
#include "engine/shard.h"

namespace ingot::core {
namespace {

int64_t rank_in(const ShardAxis& shard, const ShardRanks& ranks) {
  auto found = ranks.find(shard.group);
  if (found == ranks.end()) found = ranks.find("");
  const bool is_known = found != ranks.end() && found->second >= 0 && found->second < shard.parts;
  return is_known ? found->second : kNoPart;
}

}  // namespace

std::vector<int64_t> whole_shape(std::vector<int64_t> shape, const std::vector<ShardAxis>& shards) {
  for (const ShardAxis& shard : shards) shape[shard.axis] *= shard.parts;
  return shape;
}

int64_t part_count(const std::vector<ShardAxis>& shards) {
  int64_t count = 1;
  for (const ShardAxis& shard : shards) count *= shard.parts;
  return count;
}

int64_t part_number(const std::vector<ShardAxis>& shards, const ShardRanks& ranks) {
  int64_t number = 0;
  for (const ShardAxis& shard : shards) {
    const int64_t rank = rank_in(shard, ranks);
    if (rank == kNoPart) return kNoPart;
    number = number * shard.parts + rank;
  }
  return number;
}

TensorView part_of(TensorView whole, const std::vector<ShardAxis>& shards, int64_t number) {
  int64_t count = part_count(shards);
  for (const ShardAxis& shard : shards) {  // from the largest parts to the smallest
    count /= shard.parts;
    const int64_t rank = number / count, extent = whole.shape[shard.axis] / shard.parts;
    number %= count;
    whole.shape[shard.axis] = extent;
    whole.data += rank * extent * whole.strides[shard.axis] * (bit_width(whole.dtype) / 8);
  }
  return whole;
}

}  // namespace ingot::core
