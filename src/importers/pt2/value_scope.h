// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <unordered_map>

#include "importers/aten/program/aten_graph.h"
#include "importers/files/json.h"
#include "importers/pt2/read_context.h"

namespace ingot::core::pt2 {

// The names of one graph. Nested graphs have their own scope, without access to the outer one. The graph's
// JSON must outlive the scope. Errors are UserError INGOT-U506.
class ValueScope {
 public:
  ValueScope(Json graph_json, aten::Graph& graph, ReadContext& context);

  aten::ValueId define(std::string_view name);        // each name once; the JSON must declare its type
  aten::ValueId define_other(std::string_view name);  // a value that is neither tensor nor number
  aten::ValueId use(std::string_view name) const;     // of any kind, defined before

  aten::Graph& graph() { return graph_; }
  ReadContext& context() { return context_; }

 private:
  struct Facts {
    aten::ValueKind kind;
    Json json;
  };
  void add_facts(Json graph_json, std::string_view table, aten::ValueKind kind);
  aten::ValueId add(aten::Value value);

  std::unordered_map<std::string_view, Facts> facts_;
  std::unordered_map<std::string, aten::ValueId> defined_;
  aten::Graph& graph_;
  ReadContext& context_;
};

}  // namespace ingot::core::pt2
