// SPDX-License-Identifier: Apache-2.0
// The changes that a pass may make, and those that it made.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace ingot::core {

// An entry of the option disable_passes: PASS[.RULE][@NODES]. RULE and NODES are patterns with * and ?;
// empty: all.
struct Disabled {
  std::string pass, rule, nodes;

  bool is_whole_pass() const { return rule.empty() && nodes.empty(); }
  bool has_node(const Node& node) const;  // by Node::name, that of the user's node
};
Disabled parse_disabled(std::string_view entry);

using NodeFilter = std::function<bool(const Node& node)>;

// One change: `node` is what a pass replaced, moved, or added to a region.
struct Rewrite {
  std::string rule;  // "" if the pass has none
  std::string node, op, source;
};

// One run of a pass. The pass asks `allow` immediately before each change, so that changes can be counted.
class Rewrites {
 public:
  Rewrites() = default;  // allows everything
  // Entries of other passes are ignored; `limit`: the number of changes that may be made.
  // `only`: the nodes that the pass is for; null: all.
  Rewrites(std::string_view pass, const std::vector<Disabled>& disabled, std::optional<int64_t> limit = {},
           NodeFilter only = {});

  // Whether the user turned it off, or it is not for the node. For conditions that come before a change; does
  // not count.
  bool is_disabled(const Node& node, std::string_view rule = {}) const;
  // False: the node must stay as it is.
  bool allow(const Node& node, std::string_view rule = {});
  const std::vector<Rewrite>& made() const { return made_; }

 private:
  std::vector<Disabled> disabled_;
  std::optional<int64_t> limit_;
  NodeFilter only_;
  std::vector<Rewrite> made_;
};

}  // namespace ingot::core
