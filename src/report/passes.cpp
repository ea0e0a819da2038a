// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <fmt/core.h>

#include "report/page_data.h"

namespace ingot::core::report {
namespace {

// The rewrites of one run of a pass, by rule.
Data rule_data(const Json& made) {
  std::map<std::string, Data> nodes;
  std::map<std::string, size_t> counts;
  for (const Json& rewrite : made) {
    const std::string rule = text_of(rewrite, "rule");
    Data node;
    node.set("name", text_of(rewrite, "node"));
    node.set("op", text_of(rewrite, "op"));
    node.set("source", short_line(text_of(rewrite, "source")));
    nodes.try_emplace(rule, empty_list()).first->second << node;
    ++counts[rule];
  }
  Data rules = empty_list();
  for (const auto& [rule, list] : nodes) {
    Data data;
    const size_t count = counts[rule];
    data.set("title",
             fmt::format("{}{} node{}", rule.empty() ? "" : rule + ": ", count, count == 1 ? "" : "s"));
    data.set("nodes", list);
    rules << data;
  }
  return rules;
}

Data pass_data(const Json& pass, size_t number) {
  const bool changed = pass.value("changed", false);
  const Json& made = array_of(pass, "made");
  Data data;
  data.set("kind", changed ? "changed" : "same");
  data.set("number", std::to_string(number));
  data.set("name", text_of(pass, "name"));
  data.set("program", text_of(pass, "program"));
  data.set("before", readable_count(number_of(pass, "nodes_before")));
  data.set("after", readable_count(number_of(pass, "nodes_after")));
  data.set("change", !changed ? "nothing" : made.empty() ? "the graph, without telling which nodes" : "");
  data.set("rules", rule_data(made));
  data.set("ms", fmt::format("{:.2f}", 1000 * number_of(pass, "seconds")));
  return data;
}

Data refusal_data(const Json& refusals) {
  Data list = empty_list();
  for (const Json& refusal : refusals) {
    Data data;
    for (const char* name : {"region", "node", "reason"}) data.set(name, text_of(refusal, name));
    data.set("count", readable_count(number_of(refusal, "count")));
    list << data;
  }
  return list;
}

std::string why_without_passes(const Json& build) {
  if (build.empty()) return "Not known: the engine was loaded, and files do not record the passes.";
  if (build.value("is_from_cache", false))
    return "None ran: the engine was found in a cache. With reuse_cached_engines=false it is built again.";
  return "None ran.";
}

}  // namespace

void add_passes(Data& engine, const Json& build) {
  const Json& passes = array_of(build, "passes");
  Data list = empty_list(), nothing = empty_list();
  for (size_t i = 0; i < passes.size(); ++i) list << pass_data(passes[i], i + 1);
  if (passes.empty()) nothing << Data("text", why_without_passes(build));
  engine.set("has_passes", !passes.empty());
  engine.set("no_passes", nothing);
  engine.set("passes", list);
  engine.set("has_refusals", !array_of(build, "not_fused").empty());
  engine.set("refusals", refusal_data(array_of(build, "not_fused")));
}

}  // namespace ingot::core::report
