// SPDX-License-Identifier: Apache-2.0
#include "partition/minimum_cut.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <tuple>

namespace ingot::core {
namespace {

using Edges = std::vector<std::tuple<size_t, size_t, int64_t>>;

int64_t cost_of(const Edges& edges, const auto& at_sink) {
  int64_t cost = 0;
  for (const auto& [from, to, own] : edges) cost += !at_sink(from) && at_sink(to) ? own : 0;
  return cost;
}

TEST(MinimumCut, IsTheCheapestOfAllDivisionsWithTheFewestPointsAtTheSink) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const size_t points = 1 + random() % 8;
    MinimumCut cut;
    for (size_t i = 0; i < points; ++i) cut.add_point();
    Edges edges;
    for (size_t i = 0; i < 3 * points; ++i) {
      const size_t from = random() % (points + 2), to = random() % (points + 2);
      if (from == to || from == cut.sink() || to == cut.source()) continue;
      edges.emplace_back(from, to, static_cast<int64_t>(random() % 6));
      cut.add_edge(from, to, std::get<2>(edges.back()));
    }
    const std::vector<bool> found = cut.solve();
    int64_t least = INT64_MAX;
    int fewest = 0;
    for (unsigned set = 0; set < 1U << points; ++set) {
      const int64_t cost = cost_of(
          edges, [&](size_t point) { return point == 1 || (point > 1 && (set >> (point - 2) & 1) != 0); });
      const int count = std::popcount(set);
      if (cost < least || (cost == least && count < fewest)) least = cost, fewest = count;
    }
    EXPECT_EQ(cost_of(edges, [&](size_t point) { return found[point]; }), least);
    EXPECT_EQ(std::count(found.begin() + 2, found.end(), true), fewest);
  }
}

TEST(MinimumCut, LongChainsNeedNoDeepStack) {
  MinimumCut cut;
  size_t last = cut.source();
  for (int i = 0; i < 200'000; ++i) {
    const size_t next = cut.add_point();
    cut.add_edge(last, next, i == 1000 ? 1 : MinimumCut::kNever);
    last = next;
  }
  cut.add_edge(last, cut.sink(), MinimumCut::kNever);
  const std::vector<bool> at_sink = cut.solve();
  EXPECT_FALSE(at_sink[1001]);
  EXPECT_TRUE(at_sink[1002]);
}

}  // namespace
}  // namespace ingot::core
