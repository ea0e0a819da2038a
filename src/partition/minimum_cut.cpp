// SPDX-License-Identifier: Apache-2.0
// By Dinic's algorithm: a flow along shortest paths until there is none; what can still reach the sink then
// belongs to it.
#include "partition/minimum_cut.h"

#include <algorithm>
#include <deque>

namespace ingot::core {

size_t MinimumCut::add_point() {
  edges_.emplace_back();
  return edges_.size() - 1;
}

void MinimumCut::add_edge(size_t from, size_t to, int64_t cost) {
  edges_[from].push_back({to, edges_[to].size(), cost});
  edges_[to].push_back({from, edges_[from].size() - 1, 0});
}

bool MinimumCut::find_distances() {
  distances_.assign(edges_.size(), -1);
  distances_[source()] = 0;
  std::deque<size_t> waiting = {source()};
  for (; !waiting.empty(); waiting.pop_front()) {
    for (const Edge& edge : edges_[waiting.front()]) {
      if (edge.left == 0 || distances_[edge.to] >= 0) continue;
      distances_[edge.to] = distances_[waiting.front()] + 1;
      waiting.push_back(edge.to);
    }
  }
  return distances_[sink()] >= 0;
}

// Along one path of edges that lead on; an explicit stack, since graphs are deep.
int64_t MinimumCut::push(size_t start, int64_t most) {
  std::vector<Edge*> path;
  size_t point = start;
  while (point != sink()) {
    Edge* found = nullptr;
    for (size_t& i = next_[point]; i < edges_[point].size() && found == nullptr;) {
      Edge& edge = edges_[point][i];
      if (edge.left > 0 && distances_[edge.to] == distances_[point] + 1)
        found = &edge;
      else
        ++i;
    }
    if (found != nullptr) {
      path.push_back(found);
      point = found->to;
    } else if (path.empty()) {
      return 0;
    } else {
      distances_[point] = -1;  // a dead end
      const Edge& last = *path.back();
      point = edges_[last.to][last.reverse].to;
      path.pop_back();
    }
  }
  int64_t amount = most;
  for (const Edge* edge : path) amount = std::min(amount, edge->left);
  for (Edge* edge : path) {
    edge->left -= amount;
    edges_[edge->to][edge->reverse].left += amount;
  }
  return amount;
}

std::vector<bool> MinimumCut::solve() {
  while (find_distances()) {
    next_.assign(edges_.size(), 0);
    while (push(source(), kNever) > 0) {
    }
  }
  std::vector<bool> at_sink(edges_.size());
  at_sink[sink()] = true;
  std::deque<size_t> waiting = {sink()};
  for (; !waiting.empty(); waiting.pop_front()) {
    for (const Edge& edge : edges_[waiting.front()]) {
      const Edge& forward = edges_[edge.to][edge.reverse];
      if (forward.left == 0 || at_sink[edge.to]) continue;
      at_sink[edge.to] = true;
      waiting.push_back(edge.to);
    }
  }
  return at_sink;
}

}  // namespace ingot::core
