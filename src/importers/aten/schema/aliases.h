// SPDX-License-Identifier: Apache-2.0
// Which values of an ATen graph share memory, and what in-place calls write, from schemas and targets.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "importers/aten/program/aten_graph.h"

namespace ingot::core::aten {

struct Aliases {
  std::map<ValueId, ValueId> base;  // view -> its base, one step
  std::map<ValueId, ValueId>
      known_root;  // view -> a base that is not itself a view of a node; it may have another name
  std::map<ValueId, size_t> made_by;           // view -> node
  std::set<ValueId> written;                   // roots that a node writes, or that an output mutates
  std::vector<std::optional<ValueId>> target;  // by node: the value that it writes

  ValueId root(ValueId value) const;
  bool is_view(ValueId value) const { return base.contains(value); }
};

Aliases find_aliases(const Graph& graph);

}  // namespace ingot::core::aten
