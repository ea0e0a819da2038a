// SPDX-License-Identifier: Apache-2.0
#include "ops/infer.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/error.h"

namespace ingot::core::ops {

void fail(const Node& node, std::string message, std::string advice) {
  throw UserError(ErrorDetails{.code = "INGOT-U401",
                               .message = fmt::format("{}: {}", node.op->name, message),
                               .node = node.name,
                               .source_line = node.source.to_string(),
                               .advice = std::move(advice)});
}

Shape broadcast_shapes(const Node& node, const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const size_t skip = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const Dim& other = shorter[i];
    Dim& dim = result[skip + i];
    if (other == dim || other == Dim(1)) continue;
    if (dim != Dim(1))
      fail(node, fmt::format("shapes {} and {} do not broadcast", to_string(a), to_string(b)));
    dim = other;
  }
  return result;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  return std::equal(from.rbegin(), from.rend(), to.rbegin(),
                    [](const Dim& a, const Dim& b) { return a == b || a == Dim(1); });
}

void require_axis(const Node& node, int64_t axis, size_t rank) {
  if (axis < 0 || axis >= static_cast<int64_t>(rank))
    fail(node, fmt::format("axis {} is out of range for {} dims", axis, rank));
}

void require_same_dtype(const Node& node) {
  for (size_t i = 1; i < node.operands.size(); ++i) {
    if (node.has_operand(i) && node.operand_type(i).dtype != node.operand_type(0).dtype)
      fail(node, fmt::format("operands are {} and {}; they must have the same dtype",
                             name(node.operand_type(0).dtype), name(node.operand_type(i).dtype)));
  }
}

void require_rank(const Node& node, size_t operand, size_t rank) {
  if (node.operand_type(operand).rank() != rank)
    fail(node, fmt::format("operand {} has shape {}; it must have {} dims", operand,
                           to_string(node.operand_type(operand).shape), rank));
}

void require_shape(const Node& node, size_t operand, const Shape& shape) {
  if (node.operand_type(operand).shape != shape)
    fail(node, fmt::format("operand {} has shape {}; it must be {}", operand,
                           to_string(node.operand_type(operand).shape), to_string(shape)));
}

Types infer_same(const Node& node) { return {{node.operand_type(0).dtype, node.operand_type(0).shape, {}}}; }

Types infer_broadcast(const Node& node) {
  require_same_dtype(node);
  Shape shape = node.operand_type(0).shape;
  for (size_t i = 1; i < node.operands.size(); ++i) {
    if (node.has_operand(i)) shape = broadcast_shapes(node, shape, node.operand_type(i).shape);
  }
  return {{node.operand_type(0).dtype, std::move(shape), {}}};
}

Types infer_broadcast_bool(const Node& node) {
  Types types = infer_broadcast(node);
  types[0].dtype = DType::kBool;
  return types;
}

Types infer_same_bool(const Node& node) { return {{DType::kBool, node.operand_type(0).shape, {}}}; }

Shape reduced_shape(const Shape& shape, const std::vector<int64_t>& axes, bool keep_dims) {
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = std::ranges::find(axes, static_cast<int64_t>(i)) != axes.end();
    if (!reduced) result.push_back(shape[i]);
    if (reduced && keep_dims) result.push_back(1);
  }
  return result;
}

}  // namespace ingot::core::ops
