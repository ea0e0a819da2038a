// SPDX-License-Identifier: Apache-2.0
#include "cache/nearest_entry.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "cache/entry.h"

namespace ingot::core {
namespace {

constexpr size_t kMostEntries = 200;
constexpr uint64_t kLargest = uint64_t{64} << 20;  // bytes of an entry that is compared
constexpr size_t kMostShown = 160;                 // characters of a line

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

struct Difference {
  size_t equal_lines = 0;  // at the beginning and at the end
  std::string own, other;  // the first lines that differ
};

Difference compare(const std::vector<std::string_view>& own, const std::vector<std::string_view>& other) {
  const auto [own_line, other_line] = std::ranges::mismatch(own, other);
  const auto first = static_cast<size_t>(own_line - own.begin());
  const size_t most = std::min(own.size(), other.size()) - first;
  size_t last = 0;
  while (last < most && own[own.size() - 1 - last] == other[other.size() - 1 - last]) ++last;
  const auto shown = [](auto line, auto end) {
    return line == end ? std::string("nothing") : fmt::format("'{}'", line->substr(0, kMostShown));
  };
  return {first + last, shown(own_line, own.end()), shown(other_line, other.end())};
}

}  // namespace

std::string explain_miss(DiskStore& store, const CacheKey& key) {
  const std::vector<std::string_view> own = lines_of(key.text);
  std::vector<StoredEntry> entries = store.list();
  std::ranges::reverse(entries);  // the most recent first
  Difference nearest;
  size_t compared = 0;
  for (size_t i = 0; i < entries.size() && i < kMostEntries; ++i) {
    if (entries[i].bytes > kLargest) continue;  // weights
    const Blob file = store.read(entries[i].digest);
    if (file == nullptr) continue;
    const auto opened = open_entry(*file);
    const auto* entry = std::get_if<SealedEntry>(&opened);
    if (entry == nullptr || entry->kind != key.kind) continue;
    ++compared;
    Difference difference = compare(own, lines_of(entry->text));
    if (nearest.own.empty() || difference.equal_lines > nearest.equal_lines) nearest = std::move(difference);
  }
  if (compared == 0) return fmt::format("there is no {} yet", name_of(key.kind));
  return fmt::format("of {} kept ones the most similar has {} where this one has {}", compared, nearest.other,
                     nearest.own);
}

}  // namespace ingot::core
