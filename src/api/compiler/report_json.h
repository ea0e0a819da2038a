// SPDX-License-Identifier: Apache-2.0
// What a build did, as JSON.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/build_report.h"
#include "compiler/phases.h"

namespace ingot::core::api {

std::string report_json(const BuildReport& report, const std::vector<Phases::Phase>& phases,
                        const std::string& target);
std::string slow_json(std::span<const SlowNode> slow);

}  // namespace ingot::core::api
