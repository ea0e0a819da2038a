// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "importers/aten/program/aten_graph.h"

namespace ingot::core::aten {

// The input whose new value an output is; null if there is none. An argument may have the same name as a
// buffer.
inline const Input* mutated_input(const Graph& graph, const Output& output) {
  const bool of_user = output.kind == OutputKind::kUserInputMutation;
  const auto input = std::ranges::find_if(graph.inputs, [&](const Input& each) {
    return each.name == output.target && (each.kind == InputKind::kUser) == of_user;
  });
  return output.kind == OutputKind::kUser || input == graph.inputs.end() ? nullptr : &*input;
}

}  // namespace ingot::core::aten
