// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/program.h"

namespace ingot::core {

// The steps at which a buffer's bytes matter, aliases counted in: from the first write to the last use.
struct Lifetime {
  int32_t first = -1, last = -1;  // -1: never used
  bool used() const { return first >= 0; }
  bool meets(const Lifetime& other) const {
    return used() && other.used() && first <= other.last && other.first <= last;
  }
};

// One entry a buffer; an alias has its root's.
std::vector<Lifetime> lifetimes(const Program& program);

// Two arena buffers of one place that are alive together and that no chain of `above` relations orders, if
// there are any. Takes memory linear in the buffers.
struct UnorderedPair {
  BufferId first = kNoId, second = kNoId;
  bool found() const { return first != kNoId; }
};
UnorderedPair find_unordered(const Program& program, const std::vector<Lifetime>& lives);

}  // namespace ingot::core
