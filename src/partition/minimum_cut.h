// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ingot::core {

// Divides points into those of a source and those of a sink so that the edges from the former to the latter
// cost the least. Of several such divisions the one with the fewest points at the sink.
class MinimumCut {
 public:
  static constexpr int64_t kNever = INT64_MAX / 4;  // the cost of an edge that is not cut

  size_t add_point();
  size_t source() const { return 0; }
  size_t sink() const { return 1; }
  // Costs are not negative; their sum, kNever apart, is below kNever.
  void add_edge(size_t from, size_t to, int64_t cost);
  // One entry per point: whether it belongs to the sink. The last call.
  std::vector<bool> solve();

 private:
  struct Edge {
    size_t to, reverse;  // position among the edges of `to`
    int64_t left;        // what may still flow
  };
  bool find_distances();
  int64_t push(size_t point, int64_t most);

  std::vector<std::vector<Edge>> edges_ = std::vector<std::vector<Edge>>(2);  // by their origin
  std::vector<int64_t> distances_;                                            // from the source, -1: none
  std::vector<size_t> next_;                                                  // edge to try
};

}  // namespace ingot::core
