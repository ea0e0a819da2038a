// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "support/hash.h"

namespace ingot::core {

// What queues captured of call lists, most recently used first. A list is captured at its second use: a shape
// or an address that occurs once costs no capture. Where there are graphs enough, it is at a use whose last
// one came after that of the graph that has to go: lists that take turns, and are too many, do not replace
// each other in each call. `List` has an operator== and a checksum().
template <typename List, typename Graph>
class CaptureCache {
 public:
  CaptureCache() : seen_(kRemembered) {}

  // What was captured of `list`, by `capture(list)` if it is its second use; null if it is the first.
  template <typename Capture>
  Graph* find(const List& list, Capture&& capture) {
    if (!entries_.empty() && entries_.front()->list == list) [[likely]]
      return use(entries_.begin());
    const Checksum checksum = list.checksum();
    const auto found = std::ranges::find_if(
        entries_, [&](const auto& entry) { return entry->checksum == checksum && entry->list == list; });
    if (found != entries_.end()) return use(found);
    if (!is_worth_a_capture(checksum)) return nullptr;
    if (entries_.size() == kMostGraphs) entries_.pop_back();
    entries_.insert(entries_.begin(), std::unique_ptr<Entry>(new Entry{checksum, list, capture(list)}));
    return use(entries_.begin());
  }
  // What was captured of the list of this name, which is not empty; null if there is none, or none any more.
  Graph* find_named(std::span<const uint64_t> name) {
    const auto found = std::ranges::find_if(
        entries_, [&](const auto& entry) { return std::ranges::equal(entry->name, name); });
    return found == entries_.end() ? nullptr : use(found);
  }
  // Names the list that was found last.
  void name(std::span<const uint64_t> name) { entries_.front()->name.assign(name.begin(), name.end()); }
  void forget_names() {
    for (const auto& entry : entries_) entry->name.clear();
  }
  void clear() { entries_.clear(); }

  static constexpr size_t kMostGraphs = 32, kRemembered = 64;

 private:
  struct Entry {
    Checksum checksum;
    List list;
    Graph graph;
    uint64_t last_use = 0;
    std::vector<uint64_t> name = {};
  };
  using Entries = std::vector<std::unique_ptr<Entry>>;
  struct Seen {
    Checksum checksum;
    uint64_t last_use = 0;  // 0: no list
  };

  Graph* use(typename Entries::iterator found) {
    (*found)->last_use = ++uses_;
    std::rotate(entries_.begin(), found, found + 1);
    return &entries_.front()->graph;
  }
  bool is_worth_a_capture(const Checksum& checksum) {
    const auto known = std::ranges::find_if(
        seen_, [&](const Seen& each) { return each.last_use > 0 && each.checksum == checksum; });
    Seen& seen = known != seen_.end() ? *known : seen_[next_seen_++ % kRemembered];
    const uint64_t last = known != seen_.end() ? seen.last_use : 0;
    seen = {checksum, ++uses_};
    return last > (entries_.size() == kMostGraphs ? entries_.back()->last_use : 0);
  }

  Entries entries_;
  std::vector<Seen>
      seen_;  // lists without a graph that were used, the one remembered first overwritten first
  size_t next_seen_ = 0;
  uint64_t uses_ = 0;
};

}  // namespace ingot::core
