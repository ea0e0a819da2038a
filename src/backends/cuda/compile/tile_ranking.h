// SPDX-License-Identifier: Apache-2.0
// Shared by the rankings of all kinds of tiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace ingot::core::cuda {

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Sorts tiles by predicted time, fastest first; stable.
template <typename AnyTile>
std::vector<AnyTile> fastest_first(std::vector<std::pair<double, AnyTile>> timed) {
  std::ranges::stable_sort(timed, {}, &std::pair<double, AnyTile>::first);
  std::vector<AnyTile> tiles;
  for (const auto& [time, tile] : timed) tiles.push_back(tile);
  return tiles;
}

}  // namespace ingot::core::cuda
