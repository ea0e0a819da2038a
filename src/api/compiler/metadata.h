// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "ingot/build.h"

namespace ingot::core::api {

// The metadata that an engine keeps for its user. UserError INGOT-U021 for empty or repeated keys, and text
// that is not UTF-8.
std::map<std::string, std::string> read_user_metadata(const ingot_build_options& options);

}  // namespace ingot::core::api
