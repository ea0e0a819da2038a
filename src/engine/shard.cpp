// SPDX-License-Identifier: Apache-2.0
#include "engine/shard.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace ingot::core {
namespace {

int64_t rank_in(const ShardAxis& shard, const ShardRanks& ranks) {
  auto found = ranks.find(shard.group);
  if (found == ranks.end()) found = ranks.find("");
  const bool is_known = found != ranks.end() && found->second >= 0 && found->second < shard.parts;
  return is_known ? found->second : kNoPart;
}

// Visits the axes from the largest parts to the smallest, with the rank that has part `number` in each group.
template <typename Visit>
void for_each_axis(const std::vector<ShardAxis>& shards, int64_t number, Visit&& visit) {
  int64_t count = part_count(shards);
  for (const ShardAxis& shard : shards) {
    count /= shard.parts;
    visit(shard, static_cast<size_t>(number / count));
    number %= count;
  }
}

struct Range {
  int64_t first, count;
};
// Of `extent` elements in all.
Range rows_of(const ShardAxis& shard, size_t rank, int64_t extent) {
  const auto position = static_cast<int64_t>(rank);
  if (shard.extents.empty()) return {extent / shard.parts * position, extent / shard.parts};
  const auto begin = shard.extents.begin();
  return {std::accumulate(begin, begin + position, int64_t{0}), shard.extents[rank]};
}

}  // namespace

std::vector<int64_t> whole_shape(std::vector<int64_t> shape, const std::vector<ShardAxis>& shards) {
  for (const ShardAxis& shard : shards) {
    int64_t& extent = shape[shard.axis];
    extent = shard.extents.empty() ? extent * shard.parts
                                   : std::accumulate(shard.extents.begin(), shard.extents.end(), int64_t{0});
  }
  return shape;
}

bool has_uneven_parts(const std::vector<ShardAxis>& shards) {
  return std::ranges::any_of(shards, [](const ShardAxis& shard) { return !shard.extents.empty(); });
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

std::vector<int64_t> part_shape(std::vector<int64_t> shape, const std::vector<ShardAxis>& shards,
                                int64_t number) {
  for_each_axis(shards, number, [&](const ShardAxis& shard, size_t rank) {
    if (!shard.extents.empty()) shape[shard.axis] = shard.extents[rank];
  });
  return shape;
}

TensorView part_of(TensorView whole, const std::vector<ShardAxis>& shards, int64_t number) {
  for_each_axis(shards, number, [&](const ShardAxis& shard, size_t rank) {
    const Range rows = rows_of(shard, rank, whole.shape[shard.axis]);
    whole.shape[shard.axis] = rows.count;
    whole.data += rows.first * whole.strides[shard.axis] * (bit_width(whole.dtype) / 8);
  });
  return whole;
}

Tensor filled_up(const TensorView& part, const std::vector<int64_t>& shape) {
  Tensor all = make_tensor(part.dtype, shape);
  const Tensor dense = to_dense(part);
  const size_t width = static_cast<size_t>(bit_width(part.dtype)) / 8;
  const std::vector<int64_t> strides = row_major_strides(shape);
  const int64_t row = part.shape.back(), rows = row == 0 ? 0 : dense.elements() / row;
  for (int64_t index = 0; index < rows; ++index) {
    int64_t offset = 0, left = index;
    for (size_t axis = shape.size() - 1; axis-- > 0; left /= part.shape[axis])
      offset += left % part.shape[axis] * strides[axis];
    std::memcpy(all.data.get() + static_cast<size_t>(offset) * width,
                dense.data.get() + static_cast<size_t>(index * row) * width,
                static_cast<size_t>(row) * width);
  }
  return all;
}

}  // namespace ingot::core
