// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "support/hash.h"

namespace ingot::core {

// What queues captured of call lists, most recently used first. A list is captured at its second use: a shape
// or an address that occurs once costs no capture. `List` has an operator== and a checksum().
template <typename List, typename Graph>
class CaptureCache {
 public:
  CaptureCache() : seen_(kRemembered) {}

  // What was captured of `list`, by `capture(list)` if it is its second use; null if it is the first.
  template <typename Capture>
  Graph* find(const List& list, Capture&& capture) {
    if (!entries_.empty() && entries_.front()->list == list) [[likely]]
      return &entries_.front()->graph;
    const Checksum checksum = list.checksum();
    const auto found = std::ranges::find_if(
        entries_, [&](const auto& entry) { return entry->checksum == checksum && entry->list == list; });
    if (found != entries_.end()) {
      std::rotate(entries_.begin(), found, found + 1);
      return &entries_.front()->graph;
    }
    if (!is_second_use(checksum)) return nullptr;
    if (entries_.size() == kMostGraphs) entries_.pop_back();
    entries_.insert(entries_.begin(), std::unique_ptr<Entry>(new Entry{checksum, list, capture(list)}));
    return &entries_.front()->graph;
  }
  // What was captured of the list of this name, which is not empty; null if there is none, or none any more.
  Graph* find_named(std::span<const uint64_t> name) {
    const auto found = std::ranges::find_if(
        entries_, [&](const auto& entry) { return std::ranges::equal(entry->name, name); });
    if (found == entries_.end()) return nullptr;
    std::rotate(entries_.begin(), found, found + 1);
    return &entries_.front()->graph;
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
    std::vector<uint64_t> name = {};
  };
  bool is_second_use(const Checksum& checksum) {
    if (std::ranges::find(seen_, checksum) != seen_.end()) return true;
    seen_[next_seen_++ % kRemembered] = checksum;
    return false;
  }

  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<Checksum> seen_;  // of lists that were used once, the oldest overwritten first
  size_t next_seen_ = 0;
};

}  // namespace ingot::core
