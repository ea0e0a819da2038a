// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/shared_memory.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core::aten {
namespace {

using Range = std::pair<uintptr_t, uintptr_t>;

// The memory range of a view, as [begin, end); empty if it has no elements.
Range bytes_of(const TensorView& view) {
  const auto element = static_cast<uintptr_t>(bit_width(view.dtype) / 8);
  auto begin = reinterpret_cast<uintptr_t>(view.data), end = begin + element;
  for (size_t dim = 0; dim < view.shape.size(); ++dim) {
    if (view.shape[dim] == 0) return {begin, begin};
    const uintptr_t span =
        static_cast<uintptr_t>(view.shape[dim] - 1) * static_cast<uintptr_t>(view.strides[dim]) * element;
    (view.strides[dim] < 0 ? begin : end) += span;
  }
  return {begin, end};
}

bool mentions(const Argument& argument, ValueId id) {
  if (const auto* value = std::get_if<ValueId>(&argument.value)) return *value == id;
  const auto* list = std::get_if<ArgumentList>(&argument.value);
  return list != nullptr &&
         std::ranges::any_of(*list, [&](const Argument& item) { return mentions(item, id); });
}

bool is_used(const Graph& graph, ValueId id) {
  const auto in_node = [&](const Node& node) {
    return std::ranges::any_of(node.arguments,
                               [&](const NamedArgument& each) { return mentions(each.argument, id); });
  };
  return std::ranges::any_of(graph.nodes, in_node) ||
         std::ranges::any_of(graph.outputs, [&](const Output& output) { return mentions(output.value, id); });
}

}  // namespace

void refuse_partly_shared_memory(const Graph& graph, const Aliases& aliases) {
  for (const Input& written : graph.inputs) {
    if (!written.data || !aliases.written.contains(aliases.root(written.value))) continue;
    const Range own = bytes_of(written.data->view);
    for (const Input& other : graph.inputs) {
      if (!other.data || aliases.root(other.value) == aliases.root(written.value)) continue;
      const Range range = bytes_of(other.data->view);
      const bool overlap = std::max(own.first, range.first) < std::min(own.second, range.second);
      if (!overlap || !is_used(graph, other.value)) continue;
      throw UnsupportedError(
          {.code = "INGOT-N525",
           .message = fmt::format("the program writes \"{}\", and \"{}\" is a view of part of its memory",
                                  written.name, other.name),
           .node = {},
           .source_line = {},
           .advice = "keep only one of them in the model, and take the view in forward"});
    }
  }
}

}  // namespace ingot::core::aten
