// SPDX-License-Identifier: Apache-2.0
#include "passes/check_disabled.h"

#include <fmt/core.h>
#include <algorithm>

#include "passes/pipeline.h"
#include "support/error.h"
#include "support/name_pattern.h"
#include "support/text.h"

namespace ingot::core {
namespace {

std::string nearest_or(std::string_view name, std::span<const std::string_view> known,
                       std::string_view otherwise) {
  const std::string_view nearest = nearest_name(name, known);
  return nearest.empty() ? std::string(otherwise) : fmt::format("the nearest is \"{}\"", nearest);
}

void check_rule(const Pass& pass, const std::string& rule) {
  if (pass.rules.empty())
    throw UserError("INGOT-U004", fmt::format("the pass \"{}\" has no rules", pass.name),
                    fmt::format("\"{}\" turns off all of it", pass.name));
  const bool is_known =
      std::ranges::any_of(pass.rules, [&](std::string_view known) { return fits_pattern(rule, known); });
  if (is_known) return;
  throw UserError("INGOT-U004", fmt::format("the pass \"{}\" has no rule \"{}\"", pass.name, rule),
                  nearest_or(rule, pass.rules, "`ingot opt --list` lists all"));
}

void check_entry(std::span<const Pass> table, const std::string& text, const Disabled& entry) {
  if (entry.pass.empty() || text.ends_with('.') || text.ends_with('@') ||
      text.find(".@") != std::string::npos)
    throw UserError("INGOT-U004", fmt::format("\"{}\" names nothing to turn off", text),
                    "use PASS, PASS.RULE, PASS@NODES or PASS.RULE@NODES");
  check_pass_name(table, entry.pass);
  const Pass& pass = *find_pass(table, entry.pass);
  if (!entry.rule.empty()) check_rule(pass, entry.rule);
  if (!entry.nodes.empty() && !std::holds_alternative<RewritePass>(pass.run))
    throw UserError("INGOT-U031",
                    fmt::format("the pass \"{}\" cannot be turned off for single nodes", pass.name),
                    fmt::format("\"{}\" turns it off for all", pass.name));
}

}  // namespace

void check_pass_name(std::span<const Pass> table, std::string_view name) {
  if (find_pass(table, name) != nullptr) return;
  std::vector<std::string_view> known;
  std::string rule;  // of that name
  for (const Pass& pass : table) {
    known.push_back(pass.name);
    if (std::ranges::find(pass.rules, name) != pass.rules.end()) rule = fmt::format("{}.{}", pass.name, name);
  }
  throw UserError("INGOT-U004", fmt::format("there is no pass \"{}\"", name),
                  rule.empty() ? nearest_or(name, known, "`ingot opt --list` lists all")
                               : fmt::format("the rule is \"{}\"", rule));
}

std::vector<Disabled> checked_disabled(std::span<const Pass> table, const std::vector<std::string>& entries) {
  std::vector<Disabled> parsed;
  for (const std::string& entry : entries) {
    parsed.push_back(parse_disabled(entry));
    check_entry(table, entry, parsed.back());
  }
  return parsed;
}

std::vector<std::string> entries_without_node(const Graph& graph, const std::vector<std::string>& entries) {
  std::vector<std::string> unused;
  for (const std::string& text : entries) {
    const Disabled entry = parse_disabled(text);
    const auto is_named = [&](const auto& node) { return entry.has_node(*node); };
    if (!entry.nodes.empty() && std::ranges::none_of(graph.nodes(), is_named)) unused.push_back(text);
  }
  return unused;
}

}  // namespace ingot::core
