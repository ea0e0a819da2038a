// SPDX-License-Identifier: Apache-2.0
// What a comparison has on one side: a model, an engine, or a file of arrays.
#pragma once

#include <string>

#include "cli/session.h"

namespace ingot::cli {

bool is_array_file(const std::string& path);
bool is_model_file(const std::string& path);  // .pt2 or .onnx
// An engine file as `command` says, or a model file built without optional passes; with the weights of
// `command`.
EngineHandle open_side(const std::string& path, const RunCommand& command);

}  // namespace ingot::cli
