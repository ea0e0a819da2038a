// SPDX-License-Identifier: Apache-2.0
// Decomposed attention: two products around a softmax. And attention whose queries or keys are multiplied by
// a number, which becomes a part of its scale.
#include <algorithm>
#include <cmath>

#include "ops/attention.h"
#include "ops/axis.h"
#include "ops/ops.h"
#include "ops/view.h"
#include "passes/one_user.h"
#include "passes/simplify/rules.h"

namespace ingot::core::rewriting {
namespace {

// scale * query key^T + mask; `key` is transposed, [..., E, K].
struct Scores {
  Value* query = nullptr;
  Value* key = nullptr;
  Value* mask = nullptr;
  double scale = 1;
};

// Intermediate results between the two products have no other users.
Node* private_producer(const Graph& graph, const Value* value) {
  return has_one_user(graph, value) ? value->producer : nullptr;
}

std::optional<Scores> read_product(const Graph& graph, const Value* value) {
  const Node* node = private_producer(graph, value);
  if (node == nullptr || node->op != &ops::matmul) return std::nullopt;
  return Scores{.query = node->operands[0], .key = node->operands[1]};
}

bool is_scaling(const Node* node) {
  return node != nullptr && (node->op == &ops::multiply || node->op == &ops::divide);
}

// What a scaling multiplies its first operand by. The attribute value 0 means 1 / sqrt(E).
std::optional<double> factor_of(const Node& scaling) {
  const auto number = number_everywhere(scaling.operands[1]);
  if (!number || *number == 0 || !std::isfinite(*number)) return std::nullopt;
  return scaling.op == &ops::divide ? 1 / *number : *number;
}

std::optional<Scores> read_scaled(const Graph& graph, const Value* value) {
  const Node* node = private_producer(graph, value);
  if (!is_scaling(node)) return read_product(graph, value);
  const auto factor = factor_of(*node);
  if (!factor) return std::nullopt;
  std::optional<Scores> scores = read_product(graph, node->operands[0]);
  if (scores) scores->scale = *factor;
  return scores;
}

std::optional<Scores> read_scores(const Graph& graph, const Value* value) {
  const Node* node = private_producer(graph, value);
  if (node == nullptr || node->op != &ops::add) return read_scaled(graph, value);
  for (const size_t i : {0, 1}) {
    std::optional<Scores> scores;
    if (node->operands[i]->type.shape == value->type.shape) scores = read_scaled(graph, node->operands[i]);
    if (!scores) continue;
    scores->mask = node->operands[1 - i];
    return scores;
  }
  return std::nullopt;
}

// Kernel templates require a constant head size, and at least one key per query.
bool fits(const Graph& graph, const Scores& scores, const Value* values) {
  const Shape &query = scores.query->type.shape, &key = scores.key->type.shape, &value = values->type.shape;
  const auto is_batched_alike = [&](const Shape& shape) {
    return shape.size() == query.size() && std::equal(query.begin(), query.end() - 2, shape.begin());
  };
  return query.size() >= 3 && is_batched_alike(key) && is_batched_alike(value) &&
         query.back().is_constant() && value.back().is_constant() &&
         range_of(key.back(), graph.symbols).min > 0;
}

// [..., E, K] to [..., K, E]; later passes merge it with the existing transpose.
Value* turned(Graph& graph, Value* key) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < key->type.rank(); ++i) order.push_back(static_cast<int64_t>(i));
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return graph.call(ops::transpose, {key}, ops::Permutation{std::move(order)});
}

Value* attention(Graph& graph, const Match& match) {
  const Node& softmax = match.node("weights");
  const auto axis = softmax.attributes<ops::Axis>().axis;
  if (!match.is_used_once("weights") || axis + 1 != static_cast<int64_t>(softmax.operand_type(0).rank()))
    return nullptr;
  const auto scores = read_scores(graph, match.value("scores"));
  if (!scores || !fits(graph, *scores, match.value("v"))) return nullptr;
  return graph.call(ops::attention,
                    {scores->query, turned(graph, scores->key), match.value("v"), scores->mask},
                    ops::Attention{.scale = scores->scale, .empty_is_nan = true});
}

// The factor of an operand of attention, which becomes what was multiplied; 1 if there is none. Views stand
// between them, where heads are split.
double take_factor(Graph& graph, Value*& operand) {
  std::vector<const Node*> views;
  const Node* node = private_producer(graph, operand);
  while (node != nullptr && node->op->traits.has(Trait::kView)) {
    views.push_back(node);
    node = private_producer(graph, node->operands[0]);
  }
  if (!is_scaling(node) || node->operand_type(0) != node->results[0]->type) return 1;
  const auto factor = factor_of(*node);
  if (!factor) return 1;
  operand = node->operands[0];
  for (auto view = views.rbegin(); view != views.rend(); ++view)
    operand = graph.add_copy(**view, {operand})->results[0];
  return *factor;
}

// One rounding less, and one operation; what is left are projections, which merge_linears joins.
Value* attention_of_scaled(Graph& graph, const Match& match) {
  std::vector<Value*> operands = match.root().operands;
  auto attributes = match.root().attributes<ops::Attention>();
  const double factor = take_factor(graph, operands[ops::kQuery]) * take_factor(graph, operands[ops::kKey]);
  const Dim& width = operands[ops::kQuery]->type.shape.back();
  if (factor == 1 || !std::isfinite(factor) || (attributes.scale == 0 && !width.is_constant()))
    return nullptr;
  if (attributes.scale == 0) attributes.scale = 1 / std::sqrt(static_cast<double>(*width.constant()));
  attributes.scale *= factor;
  return graph.call(ops::attention, std::move(operands), attributes);
}

constexpr Rule kAttentionRules[] = {
    {.name = "attention", .from = "matmul(weights:softmax(scores), v)", .build = attention},
    {.name = "attention_of_scaled", .from = "attention(...)", .build = attention_of_scaled},
};

}  // namespace

std::span<const Rule> attention_rules() { return kAttentionRules; }

}  // namespace ingot::core::rewriting
