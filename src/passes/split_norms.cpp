// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <vector>

#include "ops/elementwise.h"
#include "ops/normalization.h"
#include "ops/ops.h"
#include "ops/row_moments.h"
#include "passes/converted_values.h"
#include "passes/norm_folding.h"
#include "passes/one_user.h"
#include "passes/replace_all_uses.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

constexpr int64_t kLongestRow = ops::kMostParts * ops::kMomentNeighbours;

const Node* producer_of(const Value* value, const Op& op) {
  return value->producer != nullptr && value->producer->op == &op ? value->producer : nullptr;
}

// The linear layer whose kernel can end with the sum: one operand is its result, and nothing is broadcast.
const Node* linear_of_sum(const Graph& graph, const Node& add) {
  for (const Value* operand : add.operands) {
    const Node* linear = producer_of(operand, ops::linear);
    if (linear != nullptr && has_one_user(graph, operand) && operand->type == add.results[0]->type)
      return linear;
  }
  return nullptr;
}

// The linear layer whose kernel ends with `value`; null if there is none.
const Node* linear_before(const Graph& graph, const Value* value) {
  if (const Node* linear = producer_of(value, ops::linear)) return linear;
  const Node* add = producer_of(value, ops::add);
  return add == nullptr ? nullptr : linear_of_sum(graph, *add);
}

class Splitter {
 public:
  Splitter(Graph& graph, const NormRule& rule)
      : graph_(graph), rule_(rule), invariant_(invariant_nodes(graph)) {}

  bool is_splittable(const Node& norm) const {
    if (!is_row_norm(norm) || !are_operands_invariant(norm, invariant_)) return false;
    const Value *input = norm.operands[kNormInput], *result = norm.results[0];
    const auto size = input->type.shape.back().constant();
    if (!size || *size % ops::kMomentNeighbours != 0 || *size > kLongestRow) return false;
    const Node* before = linear_before(graph_, input);
    if (before == nullptr || !rule_(norm, *before) || graph_.is_output(result)) return false;
    const auto is_product = [&](const Node* user) { return reads_as_product(norm, *user); };
    return std::ranges::any_of(result->users, is_product) &&
           std::ranges::all_of(result->users, [&](const Node* user) {
             return is_product(user) || reads_as_addend(norm, *user);
           });
  }

  void split(Node& norm) {
    Value* moments = moments_before(norm);
    const std::vector<Node*> readers = norm.results[0]->users;
    std::vector<Reader> products;
    for (Node* reader : readers) {
      if (!reads_as_product(norm, *reader)) continue;
      const Graph::InsertBefore scope(graph_, reader);
      const Statistics row = statistics(norm, moments);
      Value* result = linear_of_norm_input(graph_, norm, *reader, row.mean, row.scale);
      replace_all_uses(graph_, reader->results[0], result);
      products.push_back({result->producer, row});
    }
    for (Node* reader : readers) {
      if (reads_as_product(norm, *reader)) continue;
      const Graph::InsertBefore scope(graph_, reader);
      const auto made = std::ranges::find_if(
          products, [&](const Reader& product) { return follows(*reader, *product.node); });
      Value* addend = normalized(norm, made == products.end() ? statistics(norm, moments) : made->statistics);
      for (size_t i = 0; i < reader->operands.size(); ++i)
        if (reader->operands[i] == norm.results[0]) graph_.set_operand(reader, i, addend);
    }
  }

 private:
  struct Statistics {
    Value *mean, *scale;
  };
  struct Reader {
    const Node* node;
    Statistics statistics;
  };

  // Whether the linear layer that the sum ends reads, also indirectly, what `product` makes: then the
  // product's kernel has stored the statistics.
  bool follows(const Node& sum, const Node& product) const {
    std::set<const Node*> seen;
    std::vector<const Node*> pending{linear_of_sum(graph_, sum)};
    while (!pending.empty()) {
      const Node* node = pending.back();
      pending.pop_back();
      if (node == nullptr || !seen.insert(node).second) continue;
      for (const Value* operand : node->operands) {
        if (operand == nullptr) continue;
        if (operand->producer == &product) return true;
        pending.push_back(operand->producer);
      }
    }
    return false;
  }

  Value* moments_before(Node& norm) {
    const Graph::InsertBefore scope(graph_, &norm);
    return graph_.call(ops::row_moments, {norm.operands[kNormInput]});
  }

  bool reads_as_product(const Node& norm, const Node& user) const {
    return user.op == &ops::linear && user.operands[0] == norm.results[0] &&
           are_operands_invariant(user, invariant_) && rule_(norm, user);
  }

  // A sum that a product's kernel ends with computes the norm of its own element again.
  bool reads_as_addend(const Node& norm, const Node& user) const {
    if (user.op != &ops::add || user.results[0]->type != norm.results[0]->type) return false;
    const Node* linear = linear_of_sum(graph_, user);
    return linear != nullptr && linear->results[0] != norm.results[0] && rule_(norm, *linear);
  }

  // Each product has its own: they are made where they are read.
  Statistics statistics(const Node& norm, Value* moments) {
    const bool centered = norm.op == &ops::layer_norm;
    const double epsilon = norm.attributes<ops::Normalization>().epsilon;
    return {centered ? graph_.call(ops::row_mean, {moments}) : nullptr,
            graph_.call(ops::row_scale, {moments}, ops::RowScale{epsilon, centered})};
  }

  Value* normalized(const Node& norm, const Statistics& row) {
    Value* value = converted(graph_, norm.operands[kNormInput], DType::kF32);
    if (row.mean != nullptr) value = graph_.call(ops::subtract, {value, row.mean});
    value = converted(graph_, graph_.call(ops::multiply, {value, row.scale}), norm.results[0]->type.dtype);
    if (norm.has_operand(kNormScale)) value = graph_.call(ops::multiply, {value, norm.operands[kNormScale]});
    if (norm.has_operand(kNormShift)) value = graph_.call(ops::add, {value, norm.operands[kNormShift]});
    return value;
  }

  Graph& graph_;
  const NormRule& rule_;
  const Invariant invariant_;
};

}  // namespace

Graph split_norms(Graph graph, const NormRule& rule, Rewrites& rewrites) {
  Splitter splitter(graph, rule);
  for (Node* norm : graph.node_list()) {
    if (splitter.is_splittable(*norm) && rewrites.allow(*norm)) splitter.split(*norm);
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
