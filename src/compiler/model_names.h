// SPDX-License-Identifier: Apache-2.0
// What one model calls its parts: together with the structure of its graph, all that decides an engine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/canonical_graph.h"
#include "ir/graph.h"

namespace ingot::core {

// A call of the model, by its name and line. All nodes that it became share them.
struct ModelCall {
  std::string name, source;
};

// Names by position in the canonical graph, so that isomorphic models have equal positions.
class ModelNames {
 public:
  // `canonical` is the canonical form of `graph`, whose values have the model's names.
  ModelNames(const Graph& graph, const CanonicalGraph& canonical);

  const std::string& graph() const { return graph_; }
  const std::vector<ModelCall>& calls() const { return calls_; }      // the first has no name and no line
  const std::vector<std::string>& values() const { return values_; }  // inputs, then results of nodes

  // The k-th weight or state of the canonical graph: its index among the model's weights or states.
  const std::vector<std::pair<const Op*, int64_t>>& sources() const { return sources_; }

  std::optional<uint32_t> find_call(std::string_view name, std::string_view source) const;
  std::optional<uint32_t> find_value(const std::string& name) const;
  uint32_t source_of(const Op& op, int64_t index) const;  // in `sources`

  // Which nodes are of one call: a text that is equal if two models of equal structure divide it equally. Of
  // nested graphs it has the names themselves, which bind_engine leaves as they are.
  const std::string& division() const { return division_; }
  // The calls' names, for options that choose nodes by name.
  std::string call_names() const;

 private:
  uint32_t add_call(const Node& node);
  void add_nested(const Graph& graph);

  std::string graph_, division_;
  std::vector<ModelCall> calls_;
  std::vector<std::string> values_;
  std::vector<std::pair<const Op*, int64_t>> sources_;
  std::map<std::pair<const Op*, int64_t>, uint32_t> source_ids_;
  std::unordered_map<std::string, uint32_t> call_ids_, value_ids_;
};

}  // namespace ingot::core
