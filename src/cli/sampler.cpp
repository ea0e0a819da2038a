// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/generate.h"

namespace ingot::cli {

// SplitMix64, whose sequence is part of the program's behaviour.
double Sampler::uniform() {
  uint64_t bits = state_ += 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((bits ^ (bits >> 31)) >> 11) * 0x1p-53;
}

int64_t Sampler::choose(const std::vector<float>& logits) {
  if (sampling_.temperature == 0) return std::ranges::max_element(logits) - logits.begin();
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const size_t count = sampling_.top_k == 0 ? order.size() : std::min(sampling_.top_k, order.size());
  const auto is_before = [&](size_t a, size_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  std::ranges::partial_sort(order, order.begin() + static_cast<ptrdiff_t>(count), is_before);
  std::vector<double> sums(count);  // of the probabilities, not normalized
  double sum = 0;
  for (size_t i = 0; i < count; ++i)
    sums[i] = sum += std::exp((double{logits[order[i]]} - logits[order[0]]) / sampling_.temperature);
  const auto chosen = std::ranges::upper_bound(sums, uniform() * sum) - sums.begin();
  return static_cast<int64_t>(order[std::min(static_cast<size_t>(chosen), count - 1)]);
}

}  // namespace ingot::cli
