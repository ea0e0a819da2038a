// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ingot/build.h"

namespace ingot::cli {

// As the C API takes options; the rows point into `values`.
inline std::vector<ingot_option> option_rows(const std::map<std::string, std::string>& values) {
  std::vector<ingot_option> rows;
  for (const auto& [name, value] : values) rows.push_back({name.c_str(), value.c_str()});
  return rows;
}

}  // namespace ingot::cli
