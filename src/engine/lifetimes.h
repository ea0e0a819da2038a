// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "engine/program.h"

namespace ingot::core {

// The steps during which a buffer's bytes matter, its aliases included: from the first write to the last use.
struct Lifetime {
  int32_t first = -1, last = -1;  // -1: never used
  bool used() const { return first >= 0; }
  bool meets(const Lifetime& other) const {
    return used() && other.used() && first <= other.last && other.first <= last;
  }
};

// One entry per buffer; an alias has its root's.
std::vector<Lifetime> lifetimes(const Program& program);

// Two arena buffers of one place that are live at the same time and not ordered by any chain of `above`
// relations, if there are any. Uses memory linear in the number of buffers.
std::optional<std::pair<BufferId, BufferId>> find_unordered(const Program& program,
                                                            const std::vector<Lifetime>& lives);

}  // namespace ingot::core
