// SPDX-License-Identifier: Apache-2.0
// A case, compiled and run, against the interpreter.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/host.h"
#include "tests/random/case.h"
#include "tests/random/reference.h"

namespace ingot::core::random_graphs {

// Every level for each of these processors: that of this machine and all below.
std::vector<Build> all_builds();
// Every level for the fake device.
std::vector<Build> device_builds();
// Every level for the fake device and its host, with nodes given to one, to the other, or to neither.
std::vector<Build> divided_builds(uint64_t cut);

struct Failure {
  Build build;
  std::string problem;  // "" if there is none
  bool found() const { return !problem.empty(); }
};
// The first of `builds` that gives what the reference does not allow, or that fails where the interpreter
// does not.
Failure check(const Case& test, std::span<const Build> builds, Host& host);

// The smallest case that still fails for that build, found by leaving out and replacing nodes.
Case shrink(const Case& test, const Build& build, Host& host);

}  // namespace ingot::core::random_graphs
