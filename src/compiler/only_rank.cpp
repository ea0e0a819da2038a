// SPDX-License-Identifier: Apache-2.0
#include "compiler/only_rank.h"

#include <charconv>
#include <optional>

#include <fmt/core.h>

#include "ops/collective.h"
#include "support/error.h"

namespace ingot::core {
namespace {

[[noreturn]] void refuse(const Node& node, std::string_view rank) {
  const std::string group = node.attributes<ops::Collective>().group;
  throw UserError(
      {.code = "INGOT-U354",
       .message = rank.empty()
                      ? fmt::format("it is a collective of group '{}', and a program that was traced by "
                                    "one rank may differ from that of others",
                                    group)
                      : fmt::format("rank=\"{}\" does not give a rank of group '{}'", rank, group),
       .node = node.name,
       .source_line = node.source.to_string(),
       .advice = "build with rank=R (--rank R), the rank that traced it, or rank=any if nothing in it "
                 "depends on the rank"});
}

std::optional<int64_t> parse_rank(std::string_view text) {
  int64_t rank = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), rank);
  return failure == std::errc() && end == text.data() + text.size() && rank >= 0 ? std::optional(rank)
                                                                                 : std::nullopt;
}

// Of "tp:0,dp:1", or of "0", which is for all groups. Names may contain colons.
std::optional<int64_t> rank_in(std::string_view option, std::string_view group) {
  while (!option.empty()) {
    const std::string_view entry = option.substr(0, option.find(','));
    const size_t colon = entry.rfind(':');
    if (colon == std::string_view::npos) return parse_rank(entry);
    if (entry.substr(0, colon) == group) return parse_rank(entry.substr(colon + 1));
    option.remove_prefix(std::min(option.size(), entry.size() + 1));
  }
  return std::nullopt;
}

void set_in(Node& node, std::string_view rank) {
  if (node.op->traits.has(Trait::kCollective) && node.attributes<ops::Collective>().ranks != 1) {
    int64_t only = -1;
    if (rank != "any") {
      const auto found = rank_in(rank, node.attributes<ops::Collective>().group);
      if (!found) refuse(node, rank);
      only = *found;
    }
    node.values[ops::kOnlyRankField] = only;
  }
  for (const auto& graph : node.graphs) set_only_rank(*graph, rank);
}

}  // namespace

void set_only_rank(Graph& graph, std::string_view rank) {
  for (const auto& node : graph.nodes()) set_in(*node, rank);
}

}  // namespace ingot::core
