// SPDX-License-Identifier: Apache-2.0
// Groups of ranks, and which of them a context gets.
#include "api/runtime/groups.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "api/runtime/host_access.h"
#include "engine/group_uses.h"
#include "ranks/group.h"
#include "support/environment.h"
#include "support/error.h"

using namespace ingot::core;

namespace {

constexpr size_t kFirstGroupOptions = offsetof(ingot_group_options, deadline_ms) + sizeof(int64_t);
constexpr int64_t kUsualDeadline = 60'000;

using Bound = BoundGroups::Bound;

std::vector<Bound> read_bindings(std::span<const ingot_group_binding> given) {
  std::vector<Bound> groups;
  for (const ingot_group_binding& binding : given) {
    api::require(binding.name, "groups.name");
    api::require(binding.group, "groups.group");
    groups.push_back({binding.name, binding.group->group});
  }
  return groups;
}

bool has(const std::vector<Bound>& groups, std::string_view name) {
  return std::ranges::find(groups, name, &Bound::name) != groups.end();
}

// nullopt if the environment describes no group.
std::optional<GroupOptions> group_of_environment() {
  constexpr const char* kVariables[] = {"INGOT_RANK", "INGOT_WORLD_SIZE", "INGOT_ADDRESS"};
  std::vector<std::string> missing;
  for (const char* name : kVariables)
    if (environment_variable(name).empty()) missing.emplace_back(name);
  if (missing.size() == std::size(kVariables)) return std::nullopt;
  if (!missing.empty())
    throw UserError("INGOT-U353",
                    fmt::format("the environment describes a group of ranks without {}", missing[0]),
                    "set INGOT_RANK, INGOT_WORLD_SIZE and INGOT_ADDRESS, or none of them");
  return GroupOptions{.name = "world",
                      .address = environment_variable("INGOT_ADDRESS"),
                      .rank = static_cast<int>(api::read_variable("INGOT_RANK", 0, kMostRanks)),
                      .size = static_cast<int>(api::read_variable("INGOT_WORLD_SIZE", 1, kMostRanks)),
                      .deadline = std::chrono::milliseconds(
                          api::read_variable("INGOT_GROUP_DEADLINE", kUsualDeadline, 86'400'000))};
}

// "1", or "tp:1,dp:0"; names may contain colons.
void read_ranks(std::string_view text, ShardRanks& ranks) {
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    const size_t colon = entry.rfind(':');
    const std::string_view number = colon == std::string_view::npos ? entry : entry.substr(colon + 1);
    int64_t rank = -1;
    const auto [end, failure] = std::from_chars(number.data(), number.data() + number.size(), rank);
    if (failure != std::errc() || end != number.data() + number.size() || rank < 0)
      throw UserError("INGOT-U357", fmt::format("'{}' is not a rank", entry),
                      "give a number, or GROUP:NUMBER for each group, separated by commas");
    ranks.insert_or_assign(std::string(colon == std::string_view::npos ? "" : entry.substr(0, colon)), rank);
  }
}

}  // namespace

namespace ingot::core::api {

std::vector<Bound> find_groups(const EngineData& data, std::span<const ingot_group_binding> given) {
  const std::vector<GroupUse> uses = groups_of(data);
  if (uses.empty()) return {};
  std::vector<Bound> groups = read_bindings(given);
  if (uses.size() == 1 && has(groups, "")) return groups;  // before those that were not given
  for (Bound& shared : host().shared_groups())
    if (!has(groups, shared.name)) groups.push_back(std::move(shared));
  const auto is_bound = [&](const GroupUse& use) { return use.ranks == 1 || has(groups, use.name); };
  if (uses.size() != 1 || std::ranges::all_of(uses, is_bound) || has(groups, "")) return groups;
  if (const auto options = group_of_environment())
    groups.push_back({"", host().group_of_environment([&] { return join_group(*options); })});
  return groups;
}

ShardRanks find_ranks(const EngineData& data, const char* given) {
  ShardRanks ranks;
  if (given != nullptr && *given != '\0') {
    read_ranks(given, ranks);
    return ranks;
  }
  for (const GroupUse& use : groups_of(data))
    if (use.only_rank >= 0) ranks.emplace(use.name, use.only_rank);
  for (const Bound& shared : host().shared_groups()) ranks.emplace(shared.name, shared.group->rank());
  if (!environment_variable("INGOT_RANK").empty())
    ranks.emplace("", api::read_variable("INGOT_RANK", 0, kMostRanks));
  return ranks;
}

}  // namespace ingot::core::api

extern "C" {

ingot_status* ingot_group_join(const ingot_group_options* options, ingot_group** group) {
  return api::guard([&] {
    api::require(group, "group");
    const auto given = api::read_struct(options, kFirstGroupOptions, "ingot_group_options");
    if (given.listener == nullptr) api::require(given.address, "address");
    *group = new ingot_group{join_group(
        {.name = given.name == nullptr ? "" : given.name,
         .address = given.address == nullptr ? "" : given.address,
         .rank = given.rank,
         .size = given.size,
         .deadline = std::chrono::milliseconds(given.deadline_ms == 0 ? kUsualDeadline : given.deadline_ms),
         .listener = given.listener == nullptr ? nullptr : given.listener->listener})};
  });
}

ingot_status* ingot_group_listen(const char* address, ingot_group_listener** listener) {
  return api::guard([&] {
    api::require(address, "address");
    api::require(listener, "listener");
    *listener = new ingot_group_listener{listen_for_group(address)};
  });
}
const char* ingot_group_listener_address(const ingot_group_listener* listener) {
  return listener == nullptr ? nullptr : listener->listener->address().c_str();
}
void ingot_group_listener_free(ingot_group_listener* listener) { delete listener; }

ingot_status* ingot_group_begin_work(const ingot_group* group, ingot_group_work** work) {
  return api::guard([&] {
    api::require(group, "group");
    api::require(work, "work");
    *work = new ingot_group_work{SignsOfLife(group->group)};
  });
}
void ingot_group_end_work(ingot_group_work* work) { delete work; }

void ingot_group_free(ingot_group* group) { delete group; }
int32_t ingot_group_rank(const ingot_group* group) { return group == nullptr ? -1 : group->group->rank(); }
int32_t ingot_group_size(const ingot_group* group) { return group == nullptr ? 0 : group->group->size(); }
int32_t ingot_group_is_usable(const ingot_group* group) {
  return group != nullptr && group->group->is_whole() ? 1 : 0;
}

ingot_status* ingot_group_share(const char* name, const ingot_group* group) {
  return api::guard([&] {
    api::require(name, "name");
    api::host().share_group(name, group == nullptr ? nullptr : group->group);
  });
}

const char* ingot_engine_group_name(const ingot_engine* engine, size_t index) {
  return engine == nullptr || index >= engine->groups.size() ? nullptr : engine->groups[index].c_str();
}

}  // extern "C"
