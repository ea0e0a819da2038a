// SPDX-License-Identifier: Apache-2.0
// Rewriting by tables of rules: one rule per line. A rule is a pattern (pattern.h) and its replacement: a
// term, or the result of a function. Rules may not change dtypes; a smaller shape that broadcasts to the
// node's is expanded.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "passes/rewrites.h"
#include "passes/simplify/pattern.h"

namespace ingot::core::rewriting {

struct Rule {
  std::string_view name;  // in disable_passes; unique in its pass
  std::string_view from;
  std::string_view to = {};                                     // empty: `build` creates it
  bool (*when)(const Match& match) = nullptr;                   // null: always
  Value* (*build)(Graph& graph, const Match& match) = nullptr;  // null result: the rule does not apply
};

using Tables = std::vector<std::span<const Rule>>;

// Applies rules to a fixed point, where `rewrites` allows it for the node that a rule replaces. Dead nodes
// are removed.
Graph rewrite(Graph graph, const Tables& tables, Rewrites& rewrites);

std::vector<std::string_view> names_of(const Tables& tables);

// The tables of the pass `simplify`.
std::span<const Rule> algebra_rules();
std::span<const Rule> logic_rules();
std::span<const Rule> range_rules();
std::span<const Rule> conversion_rules();
std::span<const Rule> quantization_rules();
std::span<const Rule> view_rules();
std::span<const Rule> join_rules();

// The tables of the pass `recognize_compositions`.
std::span<const Rule> activation_rules();
std::span<const Rule> attention_rules();
std::span<const Rule> norm_rules();

// Conditions that tables share.
inline bool is_integer_result(const Match& match) { return is_integer(match.dtype()); }
inline bool is_floating_result(const Match& match) { return is_floating(match.dtype()); }
inline bool is_bool_result(const Match& match) { return match.dtype() == DType::kBool; }

}  // namespace ingot::core::rewriting
