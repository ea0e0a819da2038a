// SPDX-License-Identifier: Apache-2.0
// Joining and splitting: concat, slices of it, and writes of slices.
#include "ops/axis.h"
#include "ops/ops.h"
#include "ops/view.h"
#include "passes/simplify/rules.h"

namespace ingot::core::rewriting {
namespace {

const Dim& size_along(const Value* value, int64_t axis) {
  return value->type.shape[static_cast<size_t>(axis)];
}

// A concatenation of one part, or with empty parts.
Value* without_empty_parts(Graph& graph, const Match& match) {
  const Node& node = match.root();
  const int64_t axis = node.attributes<ops::Axis>().axis;
  std::vector<Value*> parts;
  for (Value* part : node.operands) {
    if (size_along(part, axis) != Dim(0)) parts.push_back(part);
  }
  if (parts.size() == 1) return parts[0];
  if (parts.empty() || parts.size() == node.operands.size()) return nullptr;
  return graph.call(ops::concat, std::move(parts), node.values);
}

// A slice that is inside one part of a concatenation.
Value* slice_of_part(Graph& graph, const Match& match) {
  const Node& joined = match.node("joined");
  const auto slice = match.root().attributes<ops::Slice>();
  if (joined.attributes<ops::Axis>().axis != slice.axis) return nullptr;
  Dim begin = 0;
  for (Value* part : joined.operands) {
    const Dim end = begin + size_along(part, slice.axis);
    const Dim before = slice.start - begin,
              behind = end - slice.end;  // both non-negative: the slice is inside
    const bool is_inside = before.constant().value_or(-1) >= 0 && behind.constant().value_or(-1) >= 0;
    if (is_inside) {
      return graph.call(ops::slice, {part}, ops::Slice{slice.axis, before, slice.end - begin, slice.step});
    }
    begin = end;
  }
  return nullptr;
}

bool writes_all(const Match& match) {
  const auto slice = match.root().attributes<ops::Slice>();
  return slice.step == 1 && slice.start == Dim(0) && match.value("y")->type == match.result()->type;
}

bool writes_back(const Match& match) { return match.root().values == match.node("part").values; }

// x with a slice replaced by that slice with its own slice replaced: a single write, if both are along the
// same axis.
Value* write_once(Graph& graph, const Match& match) {
  const auto outer = match.root().attributes<ops::Slice>();
  const auto inner = match.node("inner").attributes<ops::Slice>();
  if (match.node("part").values != match.root().values || outer.axis != inner.axis) return nullptr;
  if (outer.step != 1 || inner.step != 1) return nullptr;
  const ops::Slice both{outer.axis, outer.start + inner.start, outer.start + inner.end, 1};
  return graph.call(ops::slice_scatter, {match.value("x"), match.value("y")}, both);
}

// Masks without effect: true, or 0 if added.
Value* without_mask(Graph& graph, const Match& match) {
  const DType dtype = match.root().operand_type(3).dtype;
  if (*number_everywhere(match.root().operands[3]) != (dtype == DType::kBool ? 1 : 0)) return nullptr;
  return graph.call(ops::attention, {match.value("q"), match.value("k"), match.value("v")},
                    match.root().values);
}

// Attention repeats a mask itself.
Value* with_short_mask(Graph& graph, const Match& match) {
  return graph.call(ops::attention,
                    {match.value("q"), match.value("k"), match.value("v"), match.value("mask")},
                    match.root().values);
}

constexpr Rule kJoinRules[] = {
    {.name = "concat_of_empty", .from = "concat(...)", .build = without_empty_parts},
    {.name = "slice_of_concat", .from = "slice(joined:concat(...))", .build = slice_of_part},
    {.name = "slice_scatter_all", .from = "slice_scatter(x, y)", .to = "y", .when = writes_all},
    {.name = "slice_scatter_itself",
     .from = "slice_scatter(x, part:slice(x))",
     .to = "x",
     .when = writes_back},
    {.name = "attention_with_zero_mask", .from = "attention(q, k, v, 0)", .build = without_mask},
    {.name = "attention_with_true_mask", .from = "attention(q, k, v, 1)", .build = without_mask},
    {.name = "attention_with_expanded_mask",
     .from = "attention(q, k, v, expand(mask))",
     .build = with_short_mask},
    {.name = "slice_scatter_twice",
     .from = "slice_scatter(x, inner:slice_scatter(part:slice(x), y))",
     .build = write_once},
};

}  // namespace

std::span<const Rule> join_rules() { return kJoinRules; }

}  // namespace ingot::core::rewriting
