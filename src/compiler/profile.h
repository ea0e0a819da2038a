// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/options.h"
#include "importers/aten/imported.h"

namespace ingot::core {

// A tensor argument of a model's call.
struct TensorArgument {
  std::string name;
  TensorType type;
};

// In the order of the call. Those that the model writes are states of its graph, the others are inputs.
std::vector<TensorArgument> tensor_arguments(const aten::Imported& model);

// Narrows the ranges of the symbols in the named arguments to the requested ones and records the typical
// sizes. UserError INGOT-U011 if a profile names an unknown argument, has the wrong rank, or contradicts a
// static dim.
void apply_profiles(SymbolTable& symbols, std::span<const TensorArgument> arguments,
                    std::span<const DimProfile> profiles);

}  // namespace ingot::core
