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
  throw UserError("INGOT-U356", fmt::format("shards: '{}': {}", entry, why),
                  "write NAME:AXIS/PARTS, such as layer.weight:0/2, or NAME:AXIS/PARTS@GROUP");
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
      !read_whole(left.substr(slash + 1), entry.shard.parts))
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

void add_shard(SourceWeight& source, const ShardEntry& entry) {
  if (entry.shard.axis >= source.shape.size())
    refuse_shard(entry.text, fmt::format("'{}' has {} dims", source.name, source.shape.size()));
  if (bit_width(source.dtype) % 8 != 0)
    refuse_shard(entry.text, fmt::format("'{}' is {}, whose elements are not whole bytes", source.name,
                                         to_string(source.dtype, source.shape)));
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
