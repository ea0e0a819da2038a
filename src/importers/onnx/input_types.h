// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "importers/onnx/load.h"
#include "types/tensor_type.h"

namespace ingot::core::onnx {

struct InputType {
  std::string name;
  TensorType type;
};

// The inputs of a call: those of the graph without initializers. Dims are numbers, or expressions over
// symbols, which `symbols` receives: named ones are shared, unnamed ones are not.
std::vector<InputType> input_types(const LoadedModel& model, SymbolTable& symbols);

}  // namespace ingot::core::onnx
