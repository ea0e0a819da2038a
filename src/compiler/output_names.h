// SPDX-License-Identifier: Apache-2.0
// What an engine calls its outputs: the keys and fields of the model's result.
#pragma once

#include <string>
#include <vector>

#include "importers/aten/import.h"

namespace ingot::core {

// One name per tensor that the model returns, all different: the path to it in the result, keys and fields by
// name, items of tuples and lists by position, joined by dots ("logits", "past_key_values.0.1"). A path that
// begins with a position gets "output_" before it, so that the items of a tuple are "output_0", "output_1"
// and a single tensor is "output_0". Where the tree is missing or does not fit the results, names count the
// results.
std::vector<std::string> output_names(const aten::Program& program, const aten::Imported& model);

}  // namespace ingot::core
