// SPDX-License-Identifier: Apache-2.0
// Engines that leave the values of their weights to a .safetensors file, and name them by their digests.
#pragma once

#include <filesystem>

#include "api/runtime/handles.h"
#include "runtime/engine.h"

namespace ingot::core::api {

// Gives the engine the weights of the file that its data names; relative names are looked for in `folder`.
// UserError INGOT-U335 if there is no such file, U334 if a value is missing or another one.
// The file must not change while the engine is in use, unless `memory` is kCopy.
void take_file_weights(ingot_engine& handle, const std::filesystem::path& folder, FileMemory memory);

// `stripped`, an engine without values of weights, is to take them from `file`: it gets the digests of those
// that `built` has. UserError as of take_file_weights, if the file does not hold them.
void leave_weights_to(const std::filesystem::path& file, const EngineData& built, EngineData& stripped);

// What an engine in `folder` calls the file `absolute`: relative where that lies in it or below.
std::string name_from(const std::filesystem::path& folder, const std::filesystem::path& absolute);

}  // namespace ingot::core::api
