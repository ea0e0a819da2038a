// SPDX-License-Identifier: Apache-2.0
#include "cache/nearest_entry.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "cache/entry.h"

namespace ingot::core {
namespace {

constexpr size_t kMostEntries = 200;
constexpr uint64_t kLargest = uint64_t{64} << 20;  // bytes of an entry that is compared
constexpr size_t kMostShown = 160;                 // characters of what differs

using Parts = std::vector<std::string_view>;

Parts parts_of(std::string_view text, char separator) {
  Parts parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// How many parts two texts have in common, at the beginning and at the end.
struct Common {
  size_t first = 0, last = 0;
};

Common common_of(const Parts& a, const Parts& b) {
  Common common;
  const size_t most = std::min(a.size(), b.size());
  while (common.first < most && a[common.first] == b[common.first]) ++common.first;
  while (common.last < most - common.first && a[a.size() - 1 - common.last] == b[b.size() - 1 - common.last])
    ++common.last;
  return common;
}

struct Difference {
  size_t equal_lines = 0, equal_words = 0;  // words: of the first lines that differ
  std::string own, other;                   // what differs in these
};

// The words of a line that differ, behind the word that says what the line is about.
std::string shown(const Parts& words, const Common& common) {
  const size_t end = words.size() - common.last;
  std::string text(common.first > 0 ? words[0] : "");
  if (common.first > 1) text += " ...";
  for (size_t i = common.first; i < end; ++i) {
    if (!text.empty()) text += ' ';
    text += words[i];
  }
  return fmt::format("'{}'", std::string_view(text).substr(0, kMostShown));
}

Difference compare(const Parts& own, const Parts& other) {
  const Common lines = common_of(own, other);
  const auto line_of = [&](const Parts& text) {
    return lines.first < text.size() ? parts_of(text[lines.first], ' ') : Parts();
  };
  const Parts own_line = line_of(own), other_line = line_of(other);
  const Common words = common_of(own_line, other_line);
  const auto text_of = [&](const Parts& text, const Parts& line) {
    return lines.first < text.size() ? shown(line, words) : std::string("nothing");
  };
  return {lines.first + lines.last, words.first + words.last, text_of(own, own_line),
          text_of(other, other_line)};
}

bool is_nearer(const Difference& a, const Difference& b) {
  return b.own.empty() || std::pair(a.equal_lines, a.equal_words) > std::pair(b.equal_lines, b.equal_words);
}

}  // namespace

std::string explain_miss(DiskStore& store, const CacheKey& key) {
  const Parts own = parts_of(key.text, '\n');
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
    Difference difference = compare(own, parts_of(entry->text, '\n'));
    if (is_nearer(difference, nearest)) nearest = std::move(difference);
  }
  if (compared == 0) return fmt::format("there is no {} yet", name_of(key.kind));
  return fmt::format("of {} kept ones the most similar has {} where this one has {}", compared, nearest.other,
                     nearest.own);
}

}  // namespace ingot::core
