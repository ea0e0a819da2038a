// SPDX-License-Identifier: Apache-2.0
// Collectives: what all ranks of a group compute together (docs/design/040). Each rank has one tensor `x`;
// the result is this rank's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/attribute.h"
#include "types/dtype.h"

namespace ingot::core::ops {

// The fields with which the attributes of each collective begin. `ranks` is the size of the group, 0 if the
// model does not say; `only_rank` is the rank whose trace the program is, if it may differ from that of
// others: no other rank may run it. -1: any.
struct Collective {
  std::string group;
  int64_t ranks = 0, only_rank = -1;
  static constexpr auto fields() {
    return std::tuple{Field{"group", &Collective::group}, Field{"ranks", &Collective::ranks},
                      Field{"only_rank", &Collective::only_rank}};
  }
};

struct ReducingCollective : Collective {  // all_reduce, reduce_scatter
  std::string reduction = "sum";          // avg, max, min, product, sum
  static constexpr auto fields() {
    return std::tuple{Field{"group", &ReducingCollective::group}, Field{"ranks", &ReducingCollective::ranks},
                      Field{"only_rank", &ReducingCollective::only_rank},
                      Field{"reduction", &ReducingCollective::reduction}};
  }
};

// Rows of dim 0 to each rank, and from each; empty: the same number everywhere.
struct AllToAll : Collective {
  std::vector<int64_t> sent, received;
  static constexpr auto fields() {
    return std::tuple{Field{"group", &AllToAll::group}, Field{"ranks", &AllToAll::ranks},
                      Field{"only_rank", &AllToAll::only_rank}, Field{"sent", &AllToAll::sent},
                      Field{"received", &AllToAll::received}};
  }
};

struct Broadcast : Collective {
  int64_t source = 0;  // a rank of the group
  static constexpr auto fields() {
    return std::tuple{Field{"group", &Broadcast::group}, Field{"ranks", &Broadcast::ranks},
                      Field{"only_rank", &Broadcast::only_rank}, Field{"source", &Broadcast::source}};
  }
};

// Whether the tensors of ranks can be reduced: numbers, but neither complex ones nor those that are only
// stored.
bool is_reducible(DType dtype);

constexpr size_t kOnlyRankField = 2;  // in the values of each collective

}  // namespace ingot::core::ops
