// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "support/hash.h"
#include "support/parallel.h"

namespace ingot::core {

// SHA-256 of each of `values`, on all threads that the process may use, each of which hashes two values at a
// time if there are enough of them. `watch` as for for_each_watched; count(bytes) is called on any thread
// after so many bytes. The largest come first, so that no thread is left with one of them at the end.
template <typename Watch, typename Count>
std::vector<Digest> digest_all(std::span<const Bytes> values, Watch&& watch, Count&& count) {
  constexpr size_t kPart = size_t{1} << 20, kEnough = 4;  // values per thread
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](size_t i) { return values[i].size(); });
  const size_t together = values.size() >= kEnough * static_cast<size_t>(available_threads()) ? 2 : 1;
  std::vector<Digest> digests(values.size());
  for_each_watched((order.size() + together - 1) / together, watch, [&](size_t index, const auto& go_on) {
    const std::span taken =
        std::span(order).subspan(index * together, std::min(together, order.size() - index * together));
    Bytes first = values[taken.front()], second = taken.size() == 2 ? values[taken.back()] : Bytes{};
    DigestBuilder of_first, of_second;
    while (!(first.empty() && second.empty()) && go_on()) {
      const size_t from_first = std::min(first.size(), kPart), from_second = std::min(second.size(), kPart);
      DigestBuilder::update_two(of_first, first.first(from_first), of_second, second.first(from_second));
      count(from_first + from_second);
      first = first.subspan(from_first);
      second = second.subspan(from_second);
    }
    digests[taken.front()] = of_first.finish();
    if (taken.size() == 2) digests[taken.back()] = of_second.finish();
  });
  return digests;
}

inline std::vector<Digest> digest_all(std::span<const Bytes> values) {
  return digest_all(values, [] {}, [](size_t) {});
}

}  // namespace ingot::core
