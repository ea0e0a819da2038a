// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/engine_data.h"

namespace ingot::core {

// Where an engine can run, on processors and devices that have what its kernel binaries need: operating
// system and architecture. Code for x86-64 serves Linux and Windows; engines without code for processors run
// everywhere.
std::vector<std::string> platforms_of(const EngineData& engine);

// "x86-64" of "windows-x86-64"; "" of a platform that there is not.
std::string_view architecture_of(std::string_view platform);

}  // namespace ingot::core
