// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <span>

#include "ir/elementwise.h"
#include "loops/kernel.h"
#include "ops/alias.h"
#include "ops/ops.h"
#include "ops/row_moments.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "passes/replace_all_uses.h"
#include "passes/shown_rounding.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

// One stage, one store, no reduction: can be computed where it is read.
bool can_be_inlined(const Node& node) {
  return node.op->lower != nullptr && (computes_elements(node) || ops::is_row_statistic(node));
}
bool is_root(const Node& node) {
  return node.op->traits.has(Trait::kContraction) || node.op->traits.has(Trait::kReduction);
}

bool is_written_in_place(const Node& node) {
  return node.op->lower != nullptr && node.op->traits.has(Trait::kInPlace);
}

// Constants and iotas: recomputing them in each region is cheaper than loading.
bool is_generator(const Node& node) { return can_be_inlined(node) && node.operands.empty(); }

// A set of nodes to be replaced by one node, at the position of `last`.
struct Region {
  Node* root;
  Node* last;
  std::set<Node*> nodes;
  Node* twin = nullptr;            // a second contraction
  std::vector<Node*> kept;         // whose results others read: results of the region behind those of `last`
  std::set<const Node*> repeated;  // nodes that the region computes for itself: others may, too
};

// What decides how regions grow, and the region of each node that has one.
struct Fusion {
  const Graph& graph;
  const FuseRules& rules;
  Rewrites& rewrites;
  std::map<const Node*, size_t> positions;
  std::map<const Node*, const Region*> taken;
  AliasOffsets aliases;
};

Node* only_user(const Graph& graph, const Node& node) {
  if (node.results.size() != 1 || graph.is_output(node.results[0])) return nullptr;
  const auto& users = node.results[0]->users;
  const bool one = !users.empty() && std::ranges::all_of(users, [&](Node* user) { return user == users[0]; });
  return one ? users[0] : nullptr;
}

// Whether the producer makes, or reads, what the root writes in place: it has to be complete before.
bool must_be_complete(const Node& root, const Node& producer, AliasOffsets& aliases) {
  if (!root.op->traits.has(Trait::kInPlace)) return false;
  if (root.operands[0]->producer == &producer) return true;
  const Value* written = aliases.root(root.operands[0]);
  return std::ranges::any_of(producer.operands, [&](const Value* operand) {
    return operand != nullptr && aliases.root(operand) == written;
  });
}

bool may_take_producer(const Region& region, const Node& producer, Fusion& fusion) {
  if (must_round(producer) || must_be_complete(*region.root, producer, fusion.aliases)) return false;
  return fusion.rules.may_take_producer(*region.root, producer) &&
         (region.twin == nullptr || fusion.rules.may_take_producer(*region.twin, producer)) &&
         fusion.rewrites.allow(producer);
}

// Whether a node that reads what the region ends with can be part of it.
bool may_take_reader(const Region& region, const Node& user, Fusion& fusion) {
  return can_be_inlined(user) && user.results.size() == 1 && !fusion.taken.contains(&user) &&
         !fusion.aliases.of(user) && !must_round(*region.last) &&
         fusion.rules.may_take_consumer(*region.root, user) && fusion.rewrites.allow(user);
}

// Follows the chain of elementwise consumers while there is only one.
void take_consumers(Region& region, Fusion& fusion) {
  while (Node* user = only_user(fusion.graph, *region.last)) {
    if (!may_take_reader(region, *user, fusion)) return;
    region.nodes.insert(user);
    region.last = user;
  }
}

using NodesInOrder = std::set<Node*, std::function<bool(Node*, Node*)>>;

NodesInOrder in_order(std::span<Node* const> nodes, const Fusion& fusion) {
  const auto is_before = [&](Node* a, Node* b) { return fusion.positions.at(a) < fusion.positions.at(b); };
  return {nodes.begin(), nodes.end(), is_before};
}

// What the readers read besides `value` that does not exist before the first of them.
NodesInOrder made_later(const NodesInOrder& readers, const Value* value, const Fusion& fusion) {
  std::vector<Node*> later;
  for (const Node* reader : readers) {
    for (const Value* operand : reader->operands) {
      Node* producer = operand == nullptr || operand == value ? nullptr : operand->producer;
      if (producer != nullptr && fusion.positions.at(producer) > fusion.positions.at(*readers.begin()))
        later.push_back(producer);
    }
  }
  return in_order(later, fusion);
}

// The nodes that alone read what a contraction ends with, if their results together are not larger: such as
// quantizations for two readers. The region stands where the first of them does, with constants that are made
// later, and has the results of all.
void take_readers(Region& region, Fusion& fusion) {
  if (!region.root->op->traits.has(Trait::kContraction) || region.last->results.size() != 1) return;
  const Value* value = region.last->results[0];
  if (fusion.graph.is_output(value)) return;
  const NodesInOrder readers = in_order(value->users, fusion);
  int bits = 0;
  for (const Node* reader : readers) bits += bit_width(reader->results[0]->type.dtype);
  if (readers.size() < 2 || bits > bit_width(value->type.dtype)) return;
  const NodesInOrder later = made_later(readers, value, fusion);
  const auto may_join = [&](Node* reader) {
    return fusion.rules.may_keep_producer(*region.root, *reader) && may_take_reader(region, *reader, fusion);
  };
  const auto may_repeat = [&](Node* node) { return may_take_producer(region, *node, fusion); };
  if (!std::ranges::all_of(later, [](const Node* node) { return is_generator(*node); })) return;
  if (!std::ranges::all_of(readers, may_join) || !std::ranges::all_of(later, may_repeat)) return;
  region.nodes.insert(readers.begin(), readers.end());
  region.nodes.insert(later.begin(), later.end());
  region.repeated.insert(later.begin(), later.end());
  region.last = *readers.begin();
  region.kept.assign(std::next(readers.begin()), readers.end());
}

// The moments of the rows that a contraction ends with, which others read too.
void take_moments(Region& region, Fusion& fusion) {
  const bool has_others = !region.kept.empty() || region.last->results.size() != 1;
  if (!region.root->op->traits.has(Trait::kContraction) || has_others) return;
  for (Node* user : region.last->results[0]->users) {
    if (user->op != &ops::row_moments || fusion.taken.contains(user)) continue;
    if (!fusion.rules.may_take_consumer(*region.root, *user) || !fusion.rewrites.allow(*user)) continue;
    region.nodes.insert(user);
    region.kept.push_back(user);
    return;
  }
}

// The statistics of rows that a contraction makes of moments, with those that others read behind it.
void take_statistics(Region& region, Fusion& fusion) {
  const auto is_behind = [&](Node* user) {
    return region.nodes.contains(user) || fusion.positions.at(user) > fusion.positions.at(region.last);
  };
  const auto may_take = [&](Node* node) {
    return !fusion.taken.contains(node) && std::ranges::all_of(node->results[0]->users, is_behind) &&
           fusion.rules.may_keep_producer(*region.root, *node) && fusion.rewrites.allow(*node);
  };
  std::vector<Node*> statistics;
  for (const Value* operand : region.root->operands) {
    Node* producer = operand == nullptr ? nullptr : operand->producer;
    if (producer != nullptr && ops::is_row_statistic(*producer)) statistics.push_back(producer);
  }
  if (!std::ranges::all_of(statistics, may_take)) return;
  for (Node* node : statistics) {
    region.nodes.insert(node);
    if (only_user(fusion.graph, *node) == nullptr) region.kept.push_back(node);
  }
}

// Whether nodes outside of the region use its intermediate results.
bool is_free(const Region& region, const Node& producer, Fusion& fusion) {
  if (fusion.taken.contains(&producer) || !can_be_inlined(producer)) return false;
  const Value* result = producer.results[0];
  const auto inside = [&](Node* user) { return region.nodes.contains(user); };
  return !fusion.graph.is_output(result) && std::ranges::all_of(result->users, inside) &&
         !fusion.aliases.of(producer);
}

bool has_type_of(const Node& node, const Node& root) {
  const TensorType &own = node.results[0]->type, &type = root.results[0]->type;
  return own.shape == type.shape && own.layout == type.layout;
}

// Whether everything in the region that depends on the twin's result reads it index by index.
bool is_joined(const Region& region, const Node& twin, const Graph& graph) {
  if (twin.results.size() != 1 || graph.is_output(twin.results[0]) || !has_type_of(twin, *region.root))
    return false;
  std::set<const Node*> seen;
  std::vector<const Node*> pending{&twin};
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    for (Node* user : node->results[0]->users) {
      const bool fits = region.nodes.contains(user) && user->op->traits.has(Trait::kElementwise) &&
                        has_type_of(*user, *region.root);
      if (!fits) return false;
      if (user != region.last && seen.insert(user).second) pending.push_back(user);
    }
  }
  return true;
}

// The contractions outside of the region that its last node depends on by nodes of the region.
std::vector<Node*> joined_contractions(const Region& region) {
  std::vector<Node*> found, pending{region.last};
  std::set<const Node*> seen{region.last};
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    for (const Value* operand : node->operands) {
      Node* producer = operand == nullptr ? nullptr : operand->producer;
      if (producer == nullptr || !seen.insert(producer).second) continue;
      if (region.nodes.contains(producer))
        pending.push_back(producer);
      else if (producer->op->traits.has(Trait::kContraction))
        found.push_back(producer);
    }
  }
  return found;
}

// silu(gate) * up: one kernel reads what both contractions read once, and stores neither's result.
void take_twin(Region& region, Fusion& fusion) {
  if (!region.root->op->traits.has(Trait::kContraction) || !region.kept.empty()) return;
  for (Node* twin : joined_contractions(region)) {
    if (fusion.taken.contains(twin) || !is_joined(region, *twin, fusion.graph)) continue;
    if (!fusion.rules.may_take_twin(*region.root, *twin) || !fusion.rewrites.allow(*twin)) continue;
    region.nodes.insert(twin);
    region.twin = twin;
    return;
  }
}

// Absorbs producers whose users are all inside, and repeats generators, to a fixed point.
void take_producers(Region& region, Fusion& fusion) {
  std::vector<Node*> pending(region.nodes.begin(), region.nodes.end());
  while (!pending.empty()) {
    Node* node = pending.back();
    pending.pop_back();
    for (Value* operand : node->operands) {
      Node* producer = operand == nullptr ? nullptr : operand->producer;
      if (producer == nullptr || region.nodes.contains(producer)) continue;
      if (!is_generator(*producer) && !is_free(region, *producer, fusion)) continue;
      if (!may_take_producer(region, *producer, fusion)) continue;
      if (is_generator(*producer)) region.repeated.insert(producer);
      region.nodes.insert(producer);
      pending.push_back(producer);
    }
  }
}

// Whether the operand of a slice is stored anyway, and stays as it is: its places are read there as fast as
// from a copy.
bool can_be_read_in_place(const Node& slice, Fusion& fusion) {
  const Value& operand = *slice.operands[0];
  const auto attributes = slice.attributes<ops::Slice>();
  const bool is_strided =
      attributes.step != 1 && attributes.axis + 1 == static_cast<int64_t>(operand.type.rank());
  const Node* producer = operand.producer;
  const bool is_stored =
      producer == nullptr || (producer->op != &ops::slice && only_user(fusion.graph, *producer) == nullptr);
  const auto writes = [](const Node* user) { return user->op->traits.has(Trait::kInPlace); };
  return is_stored && !is_strided && !fusion.aliases.of(slice) && std::ranges::none_of(operand.users, writes);
}

// Repeats slices that others read, too.
void take_slices(Region& region, Fusion& fusion) {
  for (const Node* node : std::vector<Node*>(region.nodes.begin(), region.nodes.end())) {
    for (const Value* operand : node->operands) {
      Node* slice = operand == nullptr ? nullptr : operand->producer;
      if (slice == nullptr || slice->op != &ops::slice || region.nodes.contains(slice)) continue;
      if (fusion.taken.contains(slice) || fusion.graph.is_output(operand)) continue;
      if (!can_be_read_in_place(*slice, fusion) || !may_take_producer(region, *slice, fusion)) continue;
      region.repeated.insert(slice);
      region.nodes.insert(slice);
    }
  }
}

Value* region_input(Graph& body, std::map<const Value*, Value*>& inside, Value* outer, Node& fused_operands) {
  Value* input = body.add_input(outer->name, outer->type);
  inside.emplace(outer, input);
  fused_operands.operands.push_back(outer);
  return input;
}

// Copies the region's nodes, in graph order, into a nested graph and replaces them by one fused node.
void build(Graph& graph, const Region& region, const std::vector<Node*>& order) {
  Graph body("region");
  std::map<const Value*, Value*> inside;
  Node outer;  // collects the operands
  for (Node* node : order) {
    if (!region.nodes.contains(node)) continue;
    std::vector<Value*> operands;
    for (Value* operand : node->operands) {
      const auto found = inside.find(operand);
      const bool known = operand == nullptr || found != inside.end();
      operands.push_back(operand == nullptr ? nullptr
                         : known            ? found->second
                                            : region_input(body, inside, operand, outer));
    }
    const Node* copy = body.add_copy(*node, std::move(operands));
    for (size_t i = 0; i < node->results.size(); ++i) inside.emplace(node->results[i], copy->results[i]);
  }
  std::vector<Value*> results = region.last->results;
  for (const Node* node : region.kept) results.push_back(node->results[0]);
  std::vector<TensorType> types;
  for (Value* result : results) {
    body.outputs.push_back(inside.at(result));
    types.push_back(result->type);
  }
  Graph::InsertBefore scope(graph, region.last);
  std::vector<Graph> graphs;
  graphs.push_back(std::move(body));
  Node* fused = graph.add_with_graphs(ops::fused, outer.operands, {}, std::move(graphs), std::move(types));
  fused->source = region.root->source;
  fused->name = region.root->name;
  for (size_t i = 0; i < results.size(); ++i) replace_all_uses(graph, results[i], fused->results[i]);
}

}  // namespace

Graph fuse(Graph graph, const FuseRules& rules, Rewrites& rewrites) {
  const std::vector<Node*> order = graph.node_list();
  std::list<Region> regions;
  Fusion fusion{
      .graph = graph, .rules = rules, .rewrites = rewrites, .positions = {}, .taken = {}, .aliases = {}};
  for (size_t i = 0; i < order.size(); ++i) fusion.positions.emplace(order[i], i);
  const auto& taken = fusion.taken;
  const auto add = [&](Node* root, bool consumers) {
    if (rewrites.is_disabled(*root)) return;
    Region& region = regions.emplace_back(Region{root, root, {root}});
    if (consumers) {
      take_consumers(region, fusion);
      take_readers(region, fusion);
      take_moments(region, fusion);
      take_statistics(region, fusion);
    }
    take_producers(region, fusion);
    if (consumers) {
      take_twin(region, fusion);
      if (region.twin != nullptr) take_producers(region, fusion);
    }
    take_slices(region, fusion);
    for (Node* node : region.nodes) {
      if (!region.repeated.contains(node)) fusion.taken.emplace(node, &region);
    }
  };
  for (Node* node : order) {
    if (node->op->traits.has(Trait::kContraction) && !taken.contains(node)) add(node, true);
  }
  for (Node* node : order) {
    if (is_root(*node) && !taken.contains(node)) add(node, true);
  }
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    const bool is_last = can_be_inlined(**node) || is_written_in_place(**node);
    if (is_last && !taken.contains(*node) && !fusion.aliases.of(**node)) add(*node, false);
  }
  for (const Region& region : regions) {
    if (region.nodes.size() > 1) build(graph, region, order);
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
