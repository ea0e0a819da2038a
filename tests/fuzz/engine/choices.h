// SPDX-License-Identifier: Apache-2.0
// Random choices, as the mutator of engines makes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <vector>

namespace ingot::core::fuzz {

class Choices {
 public:
  explicit Choices(std::minstd_rand& random) : random_(random) {}

  // 0 to count - 1; 0 if count is 0.
  size_t below(size_t count) { return count == 0 ? 0 : random_() % count; }

  // Null if there are none.
  template <typename Item>
  Item* any(std::vector<Item>& items) {
    return items.empty() ? nullptr : &items[below(items.size())];
  }

  // A neighbour of the old value, or a value at an end of some range.
  template <typename Number>
  Number number(Number old) {
    static constexpr int64_t kNumbers[] = {0, 1, 2, 3, 64, 1 << 16, INT32_MAX, INT64_MAX, -1, INT64_MIN};
    switch (below(3)) {
      case 0:
        return static_cast<Number>(static_cast<uint64_t>(old) + 1);
      case 1:
        return static_cast<Number>(static_cast<uint64_t>(old) - 1);
      default:
        return static_cast<Number>(kNumbers[below(std::size(kNumbers))]);
    }
  }

 private:
  std::minstd_rand& random_;
};

}  // namespace ingot::core::fuzz
