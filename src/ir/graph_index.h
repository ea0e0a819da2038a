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
  std::unordered_map<std::string, int> names;  // taken name -> last suffix that was tried after it
};

}  // namespace ingot::core
