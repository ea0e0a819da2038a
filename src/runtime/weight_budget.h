// SPDX-License-Identifier: Apache-2.0
// How much memory of its device an engine's weights may take.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace ingot::core {

struct WeightBudget {
  enum class Kind { kAll, kAuto, kBytes, kShare };
  Kind kind = Kind::kAll;
  size_t bytes = 0;  // kBytes
  double share = 1;  // kShare: of all weights

  // `available`: bytes of the device for these weights; kAuto leaves an eighth of it to others.
  size_t in_bytes(size_t total, size_t available) const;
};

// "all", "auto", "50%", "1500000000", "1.5GB" or "1.5GiB" (also K and M); none of it: null.
std::optional<WeightBudget> parse_weight_budget(std::string_view text);

// Weights of a program on its device, in bytes.
struct WeightMemory {
  size_t total = 0;      // all of them
  size_t minimum = 0;    // the smallest budget
  size_t budget = 0;     // in use
  size_t resident = 0;   // that stay on the device
  size_t ring = 0;       // per context, for copies of the others
  size_t available = 0;  // free on the device, or taken by these weights
};

}  // namespace ingot::core
