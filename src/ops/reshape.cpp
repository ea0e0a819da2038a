// SPDX-License-Identifier: Apache-2.0
#include "ops/reshape.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kReshapeOperands[] = {{"x", DTypeSet::kAny}};

Types infer_reshape(const Node& node) {
  const Shape shape = node.attributes<NewShape>().shape;
  if (core::product(node.operand_type(0).shape) != core::product(shape))
    fail(node,
         to_string(node.operand_type(0).shape) + " does not have as many elements as " + to_string(shape));
  return {{node.operand_type(0).dtype, shape, {}}};
}

// Dims [from_begin, from_end) of the operand have the same elements as [to_begin, to_end) of the result.
struct Group {
  size_t from_begin, from_end, to_begin, to_end;
};

// The finest such groups, so that indices need the fewest divisions.
std::vector<Group> common_groups(const Shape& from, const Shape& to) {
  std::vector<Group> groups;
  std::vector<Dim> from_sizes{1}, to_sizes{1};  // of prefixes
  for (const Dim& dim : from) from_sizes.push_back(from_sizes.back() * dim);
  for (const Dim& dim : to) to_sizes.push_back(to_sizes.back() * dim);
  size_t i = 0, j = 0;
  for (size_t next_i = 1; next_i <= from.size(); ++next_i) {
    const bool last = next_i == from.size();
    for (size_t next_j = last ? to.size() : j + 1; next_j <= to.size(); ++next_j) {
      if (!last && from_sizes[next_i] != to_sizes[next_j]) continue;
      groups.push_back({i, next_i, j, next_j});
      i = next_i;
      j = next_j;
      break;
    }
  }
  return groups;
}

Shape part(const Shape& shape, size_t begin, size_t end) {
  return Shape(shape.begin() + begin, shape.begin() + end);
}

loops::Kernel lower_reshape(const Node& node) {
  const Shape& from = node.operand_type(0).shape;
  const Shape& to = node.results[0]->type.shape;
  return lower_view(node, [&](const Index& index) {
    if (element_count(node.operand_type(0)) == Dim(0))
      return Index(from.size(), 0);  // avoids a division by 0
    Index at;
    for (const Group& group : common_groups(from, to)) {
      const Dim position =
          linear_index(part(to, group.to_begin, group.to_end), part(index, group.to_begin, group.to_end));
      for (Dim& dim : delinearize(part(from, group.from_begin, group.from_end), position))
        at.push_back(std::move(dim));
    }
    return at;
  });
}

Samples reshape_samples() {
  return {sample({f32({2, 3, 4})}, NewShape{{6, 4}}),
          sample({f32({6, 4})}, NewShape{{2, 3, 2, 2}}),
          sample({f32({batch(), length(), 6})}, NewShape{{batch(), length(), 2, 3}}),
          sample({f32({batch(), length(), 2, 3})}, NewShape{{batch() * length(), 6}}),
          sample({f32({1})}, NewShape{{}}),
          sample({f32({2, 0, 3})}, NewShape{{0, 7}})};
}

}  // namespace

constinit const Op reshape = {.name = "reshape",
                              .summary = "the same elements in row-major order, in another shape",
                              .operands = kReshapeOperands,
                              .attributes = attribute_schema<NewShape>(),
                              .traits = Trait::kView | Trait::kKeepsOrder,
                              .infer = infer_reshape,
                              .lower = lower_reshape,
                              .samples = reshape_samples};

}  // namespace ingot::core::ops
