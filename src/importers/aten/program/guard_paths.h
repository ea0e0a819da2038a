// SPDX-License-Identifier: Apache-2.0
// The paths that guards use for sizes of inputs: L['xs'][0].size()[1], L['pair'].left.size()[0].
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "importers/aten/program/aten_graph.h"

namespace ingot::core::aten {

struct GuardPath {
  std::string text;            // as written in the guard
  std::string input;           // torch's name of the flat input: "xs_0"
  std::optional<size_t> axis;  // nullopt: the guard is about an integer, or not about a size
};

// Parses a path at the beginning of `rest`.
GuardPath read_guard_path(std::string_view& rest);

// The size or integer that a path refers to; nullopt if it matches no input, or more than one.
std::optional<Dim> find_size(const Graph& graph, const GuardPath& path);

}  // namespace ingot::core::aten
