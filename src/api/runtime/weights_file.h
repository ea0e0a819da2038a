// SPDX-License-Identifier: Apache-2.0
// Engines that leave the values of their weights to .safetensors files, and name them by their digests.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/runtime/handles.h"
#include "runtime/engine.h"

namespace ingot::core::api {

// Gives the engine the weights of the files that its data names; relative names are looked for in `folder`.
// UserError INGOT-U335 if there is no such file, U334 if a value is missing or another one, U326 if two files
// have one. The files must not change while the engine is in use, unless `memory` is kCopy.
void take_file_weights(ingot_engine& handle, const std::filesystem::path& folder, FileMemory memory,
                       const ShardRanks& ranks);

// `stripped`, an engine without values of weights, is to take them from the files `given`, or those that an
// index among them names: it gets the digests of those that `built` has. UserError as of take_file_weights,
// if the files do not hold them.
void leave_weights_to(const std::vector<std::string>& given, const EngineData& built, EngineData& stripped);

// What an engine in `folder` calls the file `absolute`: relative where that lies in it or below.
std::string name_from(const std::filesystem::path& folder, const std::filesystem::path& absolute);

}  // namespace ingot::core::api
