// SPDX-License-Identifier: Apache-2.0
// Names of an engine's outputs: the keys and fields of the model's result.
#pragma once

#include <string>
#include <vector>

#include "importers/aten/imported.h"
#include "importers/aten/program/aten_graph.h"

namespace ingot::core {

// One unique name per tensor that the model returns: its path in the result, with keys and fields by name,
// and items of tuples and lists by position, joined by dots ("logits", "past_key_values.0.1"). A path that
// begins with a position gets the prefix "output_", so that the items of a tuple are "output_0", "output_1"
// and a single tensor is "output_0". If the tree is missing or does not match the results, names count the
// results.
std::vector<std::string> output_names(const aten::Program& program, const aten::Imported& model);

}  // namespace ingot::core
