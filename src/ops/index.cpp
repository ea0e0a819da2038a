// SPDX-License-Identifier: Apache-2.0
#include "ops/index.h"
#include "ops/indexing.h"
#include "ops/infer.h"
#include "ops/ops.h"
#include "ops/samples.h"
#include "ops/view.h"

namespace ingot::core::ops {

void require_indices_along(const Node& node, int64_t axis) {
  const Shape &x = node.operand_type(0).shape, &indices = node.operand_type(1).shape;
  require_axis(node, axis, x.size());
  require_rank(node, 1, x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const auto most = x[i].constant(), size = indices[i].constant();
    require(static_cast<int64_t>(i) == axis || !most || !size || *size <= *most, node,
            "a dim has fewer elements than there are indices");
  }
  require_places(node, axis, indices);
}

void require_places(const Node& node, int64_t axis, const Shape& indices) {
  require_axis(node, axis, node.operand_type(0).rank());
  const bool is_empty = node.operand_type(0).shape[static_cast<size_t>(axis)] == Dim(0);
  require(!is_empty || core::product(indices) == Dim(0), node, "indexes a dim without elements");
}

Shape indices_shape(const Node& node, size_t first) {
  Shape shape;
  for (size_t i = first; i < node.operands.size(); ++i)
    shape = broadcast_shapes(node, shape, node.operand_type(i).shape);
  return shape;
}
size_t indices_position(const std::vector<int64_t>& axes) {
  return axes.back() - axes.front() + 1 == static_cast<int64_t>(axes.size())
             ? static_cast<size_t>(axes.front())
             : 0;
}
Shape indexed_shape(const Node& node, const std::vector<int64_t>& axes, size_t first) {
  const Shape& x = node.operand_type(0).shape;
  require(!axes.empty() && axes.size() + first == node.operands.size(), node,
          "there must be one axis per index tensor");
  for (size_t i = 0; i < axes.size(); ++i) {
    require_axis(node, axes[i], x.size());
    require(i == 0 || axes[i] > axes[i - 1], node, "axes must be sorted");
  }
  Shape shape = reduced_shape(x, axes, false);
  const Shape indices = indices_shape(node, first);
  for (const int64_t axis : axes) require_places(node, axis, indices);
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(indices_position(axes)), indices.begin(),
               indices.end());
  return shape;
}

Index indexed_place(KernelBuilder& kernel, const Node& node, const std::vector<int64_t>& axes,
                    const Shape& indices, const Index& index, size_t first) {
  const size_t position = indices_position(axes);
  const Index which(index.begin() + static_cast<ptrdiff_t>(position),
                    index.begin() + static_cast<ptrdiff_t>(position + indices.size()));
  Index rest = index;
  rest.erase(rest.begin() + static_cast<ptrdiff_t>(position),
             rest.begin() + static_cast<ptrdiff_t>(position + indices.size()));
  const Shape& shape = node.operand_type(0).shape;
  Index at;
  size_t next = 0, kept = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (next < axes.size() && axes[next] == static_cast<int64_t>(i)) {
      at.push_back(kernel.bind(kernel.load_broadcast(first + next, indices, which), shape[i], true));
      ++next;
    } else {
      at.push_back(rest[kept++]);
    }
  }
  return at;
}

namespace {

constexpr Operand kIndexOperands[] = {{"x", DTypeSet::kAny},
                                      {.name = "indices", .dtypes = DTypeSet::kIndex, .variadic = true}};

Types infer_index(const Node& node) {
  return {{node.operand_type(0).dtype, indexed_shape(node, node.attributes<IndexedAxes>().axes, 1), {}}};
}
loops::Kernel lower_index(const Node& node) {
  const auto axes = node.attributes<IndexedAxes>().axes;
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  kernel.store(index, kernel.load(0, indexed_place(kernel, node, axes, indices_shape(node, 1), index, 1)));
  return kernel.finish();
}
Samples index_samples() {
  return {sample({f32({4, 5, 6}), i64({3}, -4, 3), i64({3}, 0, 4)}, IndexedAxes{{0, 1}}),
          sample({f32({4, length(), 6}), i64({2, 1}, -4, 3), i64({3}, 0, 5)}, IndexedAxes{{0, 2}}),
          sample({f32({4, 5}), i64({batch()}, 0, 4)}, IndexedAxes{{1}})};
}

}  // namespace

constinit const Op index = {
    .name = "index",
    .summary = "x indexed by several tensors at once, as x[i, :, j]; indices count from the end if negative",
    .operands = kIndexOperands,
    .attributes = attribute_schema<IndexedAxes>(),
    .traits = Trait::kView,
    .infer = infer_index,
    .lower = lower_index,
    .samples = index_samples};

}  // namespace ingot::core::ops
