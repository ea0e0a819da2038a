// SPDX-License-Identifier: Apache-2.0
#include "tests/random/session.h"

#include <fmt/format.h>

#include "tests/random/maker.h"

namespace ingot::core::random_graphs {

uint64_t case_seed(uint64_t seed, uint64_t index) {  // splitmix64
  uint64_t value = seed + (index + 1) * 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

bool run_case(uint64_t seed, uint64_t index, std::span<const Build> builds, Host& host,
              const std::function<void(const Found&)>& report) {
  const Case test = make_case(case_seed(seed, index));
  Failure failure = check(test, builds, host);
  if (!failure.found()) return true;
  Case smallest = shrink(test, failure.build, host);
  Failure last = check(smallest, {&failure.build, 1}, host);
  report({index, last.found() ? std::move(last) : std::move(failure), std::move(smallest)});
  return false;
}

std::string describe(uint64_t seed, const Found& found) {
  return fmt::format("-- seed {} case {}: {}\n-- problem: {}\n{}", seed, found.index,
                     to_string(found.failure.build), found.failure.problem, write_case(found.smallest));
}

}  // namespace ingot::core::random_graphs
