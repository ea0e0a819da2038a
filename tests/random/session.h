// SPDX-License-Identifier: Apache-2.0
// Many cases in a row, for the test and for the program that runs for hours.
#pragma once

#include <filesystem>
#include <functional>

#include "tests/random/check.h"

namespace ingot::core::random_graphs {

uint64_t case_seed(uint64_t seed, uint64_t index);

struct Found {
  uint64_t index;
  Failure failure;
  Case smallest;
};

// Runs one case; on a failure `report` gets the smallest case that shows it.
bool run_case(uint64_t seed, uint64_t index, std::span<const Build> builds, Host& host,
              const std::function<void(const Found&)>& report);

// The text of a failure: the problem and how to run it again, then the case.
std::string describe(uint64_t seed, const Found& found);

}  // namespace ingot::core::random_graphs
