// SPDX-License-Identifier: Apache-2.0
// Lookup tables that a graph keeps besides its nodes.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace ingot::core {

struct Node;
struct Value;

struct GraphIndex {
  struct Entry {
    std::list<std::unique_ptr<Node>>::iterator position;
    std::vector<std::unique_ptr<Value>> results;
  };
  std::unordered_map<const Node*, Entry> nodes;
  struct Name {
    int last_suffix = 0;   // that was tried after it
    bool is_kept = false;  // even if its value is erased
  };
  // Those that no other value may get. A clone keeps the names that it began with, so that they tell its
  // original's values from what is added to it.
  std::unordered_map<std::string, Name> names;

  void free(const std::string& name) {
    const auto entry = names.find(name);
    if (entry != names.end() && !entry->second.is_kept) names.erase(entry);
  }
};

}  // namespace ingot::core
