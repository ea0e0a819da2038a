// SPDX-License-Identifier: Apache-2.0
// What guards call the sizes of inputs: L['xs'][0].size()[1].
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "importers/aten/program/aten_graph.h"

namespace ingot::core::aten {

struct GuardPath {
  std::string text;            // as it stands in the guard
  std::string input;           // what torch names the flat input: "xs_0"
  std::optional<size_t> axis;  // none: it asks for something else than a size
};

// Takes a path from the beginning of `rest`, as far as it is one.
GuardPath read_guard_path(std::string_view& rest);

// The size that a path means; none if no input, or more than one, may be meant.
std::optional<Dim> find_size(const Graph& graph, const GuardPath& path);

}  // namespace ingot::core::aten
