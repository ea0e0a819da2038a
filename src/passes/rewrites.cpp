// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrites.h"

#include <algorithm>
#include <utility>

#include "support/name_pattern.h"

namespace ingot::core {
namespace {

bool is_meant(const std::string& pattern, std::string_view name) {
  return pattern.empty() || fits_pattern(pattern, name);
}

}  // namespace

bool Disabled::has_node(const Node& node) const { return is_meant(nodes, node.name); }

Disabled parse_disabled(std::string_view entry) {
  const size_t at = std::min(entry.find('@'), entry.size());
  const std::string_view what = entry.substr(0, at);
  const size_t dot = std::min(what.find('.'), what.size());
  Disabled parsed{.pass = std::string(what.substr(0, dot)), .rule = {}, .nodes = {}};
  if (dot < what.size()) parsed.rule = what.substr(dot + 1);
  if (at < entry.size()) parsed.nodes = entry.substr(at + 1);
  return parsed;
}

Rewrites::Rewrites(std::string_view pass, const std::vector<Disabled>& disabled, std::optional<int64_t> limit,
                   NodeFilter only)
    : limit_(limit), only_(std::move(only)) {
  for (const Disabled& entry : disabled) {
    if (entry.pass == pass) disabled_.push_back(entry);
  }
}

bool Rewrites::is_disabled(const Node& node, std::string_view rule) const {
  if (only_ && !only_(node)) return true;
  return std::ranges::any_of(
      disabled_, [&](const Disabled& entry) { return is_meant(entry.rule, rule) && entry.has_node(node); });
}

bool Rewrites::allow(const Node& node, std::string_view rule) {
  if (limit_ && std::ssize(made_) >= *limit_) return false;
  if (is_disabled(node, rule)) return false;
  made_.push_back({std::string(rule), node.name, std::string(node.op->name), node.source.to_string()});
  return true;
}

}  // namespace ingot::core
