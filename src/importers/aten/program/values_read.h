// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "importers/aten/program/aten_graph.h"

namespace ingot::core::aten {

// Visits the values of an argument, also those in its lists.
template <typename Visit>
void for_each_value(const Argument& argument, const Visit& visit) {
  if (const auto* id = std::get_if<ValueId>(&argument.value)) visit(*id);
  if (const auto* list = std::get_if<ArgumentList>(&argument.value)) {
    for (const Argument& item : *list) for_each_value(item, visit);
  }
}

// The values that calls of the graph take, or that it returns: of the inputs, those that may decide a result.
std::set<ValueId> values_read(const Graph& graph);

}  // namespace ingot::core::aten
