// SPDX-License-Identifier: Apache-2.0
// Weights of which each rank of a group has a part: the checkpoint has the whole tensor (docs/design/049).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "types/tensor.h"

namespace ingot::core {

// An axis of a weight that the ranks of a group divide, in their order. Where parts differ in size, all ranks
// have the type of the largest, which others fill with zeros.
struct ShardAxis {
  uint32_t axis = 0;
  int64_t parts = 1;  // ranks of the group
  std::string group;
  std::vector<int64_t> extents = {};  // of each rank's part; empty: all are equal
};

// The rank in each group; "" is for groups that are not named.
using ShardRanks = std::map<std::string, int64_t, std::less<>>;

// `shape` is the weight's, that of the largest part.
std::vector<int64_t> whole_shape(std::vector<int64_t> shape, const std::vector<ShardAxis>& shards);
int64_t part_count(const std::vector<ShardAxis>& shards);

// Which part these ranks have, counted in the order of the axes; kNoPart if a rank is not known.
constexpr int64_t kNoPart = -1;
int64_t part_number(const std::vector<ShardAxis>& shards, const ShardRanks& ranks);

bool has_uneven_parts(const std::vector<ShardAxis>& shards);
std::vector<int64_t> part_shape(std::vector<int64_t> shape, const std::vector<ShardAxis>& shards,
                                int64_t number);

// Part `number` of a tensor, in place.
TensorView part_of(TensorView whole, const std::vector<ShardAxis>& shards, int64_t number);
// A dense copy of a part with zeros behind its ends, of the weight's `shape`.
Tensor filled_up(const TensorView& part, const std::vector<int64_t>& shape);

}  // namespace ingot::core
