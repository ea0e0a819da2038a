// SPDX-License-Identifier: Apache-2.0
#include "compiler/declare_shards.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "engine/group_uses.h"
#include "support/error.h"
#include "support/name_pattern.h"

namespace ingot::core {
namespace {

constexpr int64_t kMostParts = 1024;  // ranks of a group

[[noreturn]] void refuse_shard(const std::string& entry, const std::string& why) {
  throw UserError(
      "INGOT-U356", fmt::format("shards: '{}': {}", entry, why),
      "write NAME:AXIS/PARTS, such as layer.weight:0/2, NAME:AXIS/3+3+2 for parts of these sizes, or "
      "NAME:AXIS/PARTS@GROUP");
}

template <typename Number>
bool read_whole(std::string_view text, Number& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size();
}

struct ShardEntry {
  std::string text, pattern;
  ShardAxis shard;
};

// "2", or "3+3+2".
bool read_parts(std::string_view text, ShardAxis& shard) {
  if (text.find('+') == std::string_view::npos) return read_whole(text, shard.parts);
  for (size_t end = 0; end != std::string_view::npos; text.remove_prefix(std::min(text.size(), end + 1))) {
    end = text.find('+');
    if (!read_whole(text.substr(0, end), shard.extents.emplace_back()) || shard.extents.back() < 0)
      return false;
  }
  shard.parts = static_cast<int64_t>(shard.extents.size());
  return true;
}

ShardEntry parse_shard(const std::string& text) {
  ShardEntry entry{text, {}, {}};
  std::string_view left = text;
  if (const size_t at = left.rfind('@'); at != std::string_view::npos) {
    entry.shard.group = left.substr(at + 1);
    left = left.substr(0, at);
  }
  const size_t colon = left.rfind(':'), slash = left.rfind('/');
  const bool is_complete =
      colon != std::string_view::npos && slash != std::string_view::npos && colon < slash && colon > 0;
  if (!is_complete || !read_whole(left.substr(colon + 1, slash - colon - 1), entry.shard.axis) ||
      !read_parts(left.substr(slash + 1), entry.shard))
    refuse_shard(text, "it does not say which axis is divided, or into how many parts");
  if (entry.shard.parts < 1 || entry.shard.parts > kMostParts)
    refuse_shard(text, fmt::format("there can be 1 to {} parts", kMostParts));
  entry.pattern = left.substr(0, colon);
  return entry;
}

// The program's name of the group, whose size is checked where the program says it.
void find_group(ShardEntry& entry, const std::vector<GroupUse>& uses) {
  std::string& group = entry.shard.group;
  if (group.empty() && uses.size() == 1) group = uses[0].name;
  const auto use = std::ranges::find(uses, group, &GroupUse::name);
  // A part of a program may have the weight and not the collective.
  if (use == uses.end() && !group.empty() && !entry.shard.extents.empty()) return;
  if (use == uses.end() && (!uses.empty() || !group.empty())) {
    std::vector<std::string> names;
    for (const GroupUse& each : uses) names.push_back(each.name);
    refuse_shard(entry.text,
                 names.empty() ? fmt::format("the program has no group '{}'", group)
                               : fmt::format("the groups of the program are '{}'", fmt::join(names, "', '")));
  }
  if (use != uses.end() && use->ranks != 0 && use->ranks != entry.shard.parts)
    refuse_shard(entry.text, fmt::format("group '{}' has {} ranks", use->name, use->ranks));
}

// Whether the weight's parts, whose sizes another entry gives, are those that this entry gives or counts.
bool are_known(const SourceWeight& source, const ShardAxis& shard) {
  return std::ranges::any_of(source.shards, [&](const ShardAxis& known) {
    return !known.extents.empty() && known.axis == shard.axis && known.parts == shard.parts &&
           known.group == shard.group && (shard.extents.empty() || shard.extents == known.extents);
  });
}

void add_shard(SourceWeight& source, const ShardEntry& entry) {
  if (are_known(source, entry.shard)) return;
  if (entry.shard.axis >= source.shape.size())
    refuse_shard(entry.text, fmt::format("'{}' has {} dims", source.name, source.shape.size()));
  if (bit_width(source.dtype) % 8 != 0)
    refuse_shard(entry.text, fmt::format("'{}' is {}, whose elements are not whole bytes", source.name,
                                         to_string(source.dtype, source.shape)));
  const std::vector<int64_t>& extents = entry.shard.extents;
  const int64_t extent = source.shape[entry.shard.axis];
  if (!extents.empty() && std::ranges::max(extents) != extent)
    refuse_shard(entry.text, fmt::format("axis {} of '{}' has {} elements, the largest part {}",
                                         entry.shard.axis, source.name, extent, std::ranges::max(extents)));
  if (!source.shards.empty() && (!extents.empty() || has_uneven_parts(source.shards)))
    refuse_shard(entry.text,
                 fmt::format("another entry divides '{}', and its parts differ in size", source.name));
  const auto is_same = [&](const ShardAxis& known) { return known.group == entry.shard.group; };
  if (std::ranges::any_of(source.shards, is_same))
    refuse_shard(entry.text, fmt::format("another entry divides '{}' among the same group", source.name));
  source.shards.push_back(entry.shard);
}

}  // namespace

void declare_shards(EngineData& engine, const std::vector<std::string>& entries) {
  const std::vector<GroupUse> uses = groups_of(engine);
  for (const std::string& text : entries) {
    ShardEntry entry = parse_shard(text);
    find_group(entry, uses);
    bool is_used = false;
    for (SourceWeight& source : engine.sources) {
      if (!fits_pattern(entry.pattern, source.name)) continue;
      add_shard(source, entry);
      is_used = true;
    }
    if (!is_used) refuse_shard(text, "the program reads no weight of that name");
  }
}

}  // namespace ingot::core
