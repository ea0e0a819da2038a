// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/compiler/build.h"

namespace ingot::core::api {

// A .pt2 file of torch.export, or an ONNX model, by its content.
Model read_model_file(const char* path);

// An ONNX model in memory, which is copied. `folder` (may be null): of the files that its values are in.
Model read_onnx(Bytes file, const char* folder);

// The model as text, for people.
std::string describe_model_file(const char* path);

}  // namespace ingot::core::api
