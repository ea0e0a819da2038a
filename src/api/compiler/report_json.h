// SPDX-License-Identifier: Apache-2.0
// What a build did, as JSON.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/build_report.h"
#include "compiler/phases.h"

namespace ingot::core::api {

// One level of an engine: its target, and what its build did.
struct LevelReport {
  std::string target;
  BuildReport report;
};

// The phases of the whole build, and the fields of its first level; those of each one in `levels` if there
// are several.
std::string report_json(const std::vector<LevelReport>& levels, const std::vector<Phases::Phase>& phases);
std::string slow_json(std::span<const SlowNode> slow);

}  // namespace ingot::core::api
