// SPDX-License-Identifier: Apache-2.0
#include "engine/group_uses.h"

#include <algorithm>

#include <fmt/core.h>

#include "support/hash.h"

namespace ingot::core {
namespace {

template <typename Kind>
const Kind* find_attribute(const RoutineStep& routine, std::string_view name) {
  const auto found = std::ranges::find(routine.attributes, name, &NamedValue::name);
  return found == routine.attributes.end() ? nullptr : std::get_if<Kind>(&found->value);
}

// Its group, if the step is a collective.
const std::string* group_of(const Step& step) {
  const auto* routine = step.as<RoutineStep>();
  return routine == nullptr ? nullptr : find_attribute<std::string>(*routine, "group");
}

template <typename Visit>
void for_each_collective(const Program& program, Visit&& visit) {
  for (const Step& step : program.steps)
    if (group_of(step) != nullptr) visit(program, step);
  for (const Program& nested : program.nested) for_each_collective(nested, visit);
}

int64_t number_of(const Step& step, std::string_view name, int64_t otherwise) {
  const auto* value = find_attribute<int64_t>(*step.as<RoutineStep>(), name);
  return value == nullptr ? otherwise : *value;
}

// Ranks may have other names for groups of which each rank has its own.
size_t position_of(const std::vector<GroupUse>& uses, std::string_view name) {
  return static_cast<size_t>(std::ranges::find(uses, name, &GroupUse::name) - uses.begin());
}

}  // namespace

bool is_device_collective(const Step& step) {
  return group_of(step) != nullptr && number_of(step, kOnDevice, 0) == 1;
}

std::vector<GroupUse> groups_of(const EngineData& data) {
  std::vector<GroupUse> uses;
  for_each_collective(data.main, [&](const Program&, const Step& step) {
    const GroupUse own{.name = *group_of(step),
                       .ranks = number_of(step, "ranks", 0),
                       .only_rank = number_of(step, "only_rank", -1)};
    const auto known = std::ranges::find(uses, own.name, &GroupUse::name);
    if (known == uses.end()) return uses.push_back(own);
    if (known->ranks == 0) known->ranks = own.ranks;
    if (known->only_rank == -1) known->only_rank = own.only_rank;
  });
  for (const auto& [symbol, info] : data.main.symbols) {
    if (!info.by_rank) continue;
    for (const RankAxis& axis : info.by_rank->axes) {
      const auto known = std::ranges::find(uses, axis.group, &GroupUse::name);
      if (known == uses.end())
        uses.push_back({.name = axis.group, .ranks = axis.ranks, .has_collectives = false});
      else if (known->ranks == 0)
        known->ranks = axis.ranks;
    }
  }
  return uses;
}

uint64_t collective_tag(const EngineData& data) {
  const std::vector<GroupUse> uses = groups_of(data);
  const bool is_for_all = std::ranges::all_of(uses, [](const GroupUse& use) { return use.only_rank == -1; });
  std::string text;
  for_each_collective(data.main, [&](const Program& program, const Step& step) {
    const auto& routine = *step.as<RoutineStep>();
    const BufferId operand = step.uses.empty() ? kNoId : step.uses[0].buffer;
    text += fmt::format("{} {} {} {}\n", routine.routine, position_of(uses, *group_of(step)),
                        number_of(step, "source", 0),
                        operand == kNoId ? "" : name(program.buffers[operand].type.dtype));
    if (routine.image != kNoId) text += "peers\n";
    if (const auto* reduction = find_attribute<std::string>(routine, "reduction")) text += *reduction + "\n";
  });
  if (is_for_all)
    for (const NodeRecord& node : data.nodes) text += node.op + "\n";
  return short_hash(text);
}

}  // namespace ingot::core
