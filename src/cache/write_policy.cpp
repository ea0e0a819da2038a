// SPDX-License-Identifier: Apache-2.0
#include "cache/write_policy.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace ingot::core {
namespace {

template <typename Value, size_t kCount>
std::optional<Value> find_named(const std::pair<std::string_view, Value> (&rows)[kCount],
                                std::string_view name) {
  for (const auto& [known, value] : rows) {
    if (known == name) return value;
  }
  return std::nullopt;
}

std::optional<WritePolicy> parse_policy(std::string_view name) {
  static constexpr std::pair<std::string_view, WritePolicy> kPolicies[] = {
      {"through", WritePolicy::kThrough},
      {"back", WritePolicy::kBack},
      {"read_only", WritePolicy::kReadOnly},
      {"none", WritePolicy::kNone}};
  return find_named(kPolicies, name);
}

bool parse_entry(std::string_view entry, WritePolicies& policies) {
  static constexpr std::pair<std::string_view, WritePolicy WritePolicies::*> kStores[] = {
      {"disk", &WritePolicies::disk}, {"store", &WritePolicies::store}, {"server", &WritePolicies::server}};
  const size_t colon = entry.find(':');
  if (colon == entry.npos) {
    const auto policy = parse_policy(entry);
    if (policy) policies = {*policy, *policy, *policy};
    return policy.has_value();
  }
  const auto store = find_named(kStores, entry.substr(0, colon));
  const auto policy = parse_policy(entry.substr(colon + 1));
  if (store && policy) policies.*(*store) = *policy;
  return store && policy;
}

}  // namespace

bool parse_write_policies(std::string_view text, WritePolicies& policies) {
  WritePolicies parsed = policies;
  for (;;) {
    const size_t comma = std::min(text.find(','), text.size());
    if (!parse_entry(text.substr(0, comma), parsed)) return false;
    if (comma == text.size()) break;
    text.remove_prefix(comma + 1);
  }
  policies = parsed;
  return true;
}

}  // namespace ingot::core
