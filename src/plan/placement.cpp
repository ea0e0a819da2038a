// SPDX-License-Identifier: Apache-2.0
#include "plan/placement.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace ingot::core {
namespace {

using Order = std::vector<uint32_t>;

// For each block, the blocks that are live at the same time.
std::vector<Order> find_conflicts(std::span<const Block> blocks) {
  std::vector<Order> conflicts(blocks.size());
  for (uint32_t a = 0; a < blocks.size(); ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      if (!blocks[a].life.meets(blocks[b].life)) continue;
      conflicts[a].push_back(b);
      conflicts[b].push_back(a);
    }
  }
  return conflicts;
}

// Places the blocks, in the given order, each into the smallest gap between placed blocks that fits.
class BestFit {
 public:
  BestFit(std::span<const Block> blocks, const std::vector<Order>& conflicts)
      : blocks_(blocks), conflicts_(conflicts) {}

  Placement place(const Order& order) {
    Placement result{std::vector<int64_t>(blocks_.size(), -1)};
    for (const uint32_t block : order) {
      result.offsets[block] = find_gap(block, result.offsets);
      result.total = std::max(result.total, result.offsets[block] + blocks_[block].bytes);
    }
    return result;
  }

 private:
  int64_t find_gap(uint32_t block, const std::vector<int64_t>& offsets) {
    placed_.clear();
    for (const uint32_t other : conflicts_[block]) {
      if (offsets[other] >= 0) placed_.emplace_back(offsets[other], offsets[other] + blocks_[other].bytes);
    }
    std::ranges::sort(placed_);
    int64_t end = 0, best = -1, best_gap = INT64_MAX;
    for (const auto& [low, high] : placed_) {
      const int64_t gap = low - end;
      if (gap >= blocks_[block].bytes && gap < best_gap) {
        best = end;
        best_gap = gap;
      }
      end = std::max(end, high);
    }
    return best >= 0 ? best : end;
  }

  std::span<const Block> blocks_;
  const std::vector<Order>& conflicts_;
  std::vector<std::pair<int64_t, int64_t>> placed_;
};

template <typename Key>
Order sorted_by(std::span<const Block> blocks, Key key) {
  Order order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) { return key(a) > key(b); });
  return order;
}

std::vector<int64_t> live_bytes(std::span<const Block> blocks) {
  int32_t steps = 0;
  for (const Block& block : blocks) steps = std::max(steps, block.life.last + 1);
  std::vector<int64_t> live(static_cast<size_t>(steps));
  for (const Block& block : blocks) {
    for (int32_t s = block.life.first; s >= 0 && s <= block.life.last; ++s)
      live[static_cast<size_t>(s)] += block.bytes;
  }
  return live;
}

// Greedy by breadth: the steps with the most live bytes first, the largest blocks of a step first.
Order breadth_order(std::span<const Block> blocks) {
  const std::vector<int64_t> live = live_bytes(blocks);
  return sorted_by(blocks, [&](uint32_t i) {
    int64_t breadth = 0;
    for (int32_t s = blocks[i].life.first; s >= 0 && s <= blocks[i].life.last; ++s) {
      breadth = std::max(breadth, live[static_cast<size_t>(s)]);
    }
    return std::pair(breadth, blocks[i].bytes);
  });
}

// Swaps two positions in the order and keeps improvements and ties, a bounded number of times.
void improve(BestFit& fit, Order& order, Placement& best, int64_t bound) {
  constexpr size_t kWork = 2'000'000;  // blocks placed
  const size_t tries =
      order.size() < 2 ? 0 : std::min<size_t>(2000, kWork / (order.size() * order.size()) + 1);
  std::minstd_rand random(1);
  for (size_t i = 0; i < tries && best.total > bound; ++i) {
    const size_t a = random() % order.size();
    const size_t b = random() % order.size();
    std::swap(order[a], order[b]);
    Placement candidate = fit.place(order);
    if (candidate.total <= best.total) {
      best = std::move(candidate);
    } else {
      std::swap(order[a], order[b]);
    }
  }
}

}  // namespace

int64_t liveness_bound(std::span<const Block> blocks) {
  const std::vector<int64_t> live = live_bytes(blocks);
  return live.empty() ? 0 : *std::ranges::max_element(live);
}

Placement place(std::span<const Block> blocks) {
  const std::vector<Order> conflicts = find_conflicts(blocks);
  const int64_t bound = liveness_bound(blocks);
  const auto duration = [&](uint32_t i) { return blocks[i].life.last - blocks[i].life.first + 1; };
  BestFit fit(blocks, conflicts);
  Order best_order = sorted_by(blocks, [&](uint32_t i) { return std::pair(blocks[i].bytes, duration(i)); });
  Placement best = fit.place(best_order);
  const auto consider = [&](Order order) {
    if (best.total <= bound) return;
    Placement candidate = fit.place(order);
    if (candidate.total >= best.total) return;
    best = std::move(candidate);
    best_order = std::move(order);
  };
  consider(breadth_order(blocks));
  consider(sorted_by(blocks, [&](uint32_t i) { return blocks[i].bytes * duration(i); }));
  improve(fit, best_order, best, bound);
  return best;
}

}  // namespace ingot::core
