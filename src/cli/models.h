// SPDX-License-Identifier: Apache-2.0
// What commands do with models, which takes the compiler: without it each is a CommandError.
#pragma once

#include <string>

#include "cli/session.h"

namespace ingot::cli {

EngineHandle build_plain(const std::string& path);  // of a model file, without optional passes
std::string describe_model(const std::string& path);

}  // namespace ingot::cli
