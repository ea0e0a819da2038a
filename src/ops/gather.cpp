// SPDX-License-Identifier: Apache-2.0
// Reads at indices in data. An index outside of its dim fails the run.
#include "ops/axis.h"
#include "ops/indexing.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kGatherOperands[] = {{"x", DTypeSet::kAny}, {"indices", DTypeSet::kIndex}};

Types infer_take(const Node& node) {
  const auto axis = node.attributes<Axis>().axis;
  const TensorType& x = node.operand_type(0);
  require_places(node, axis, node.operand_type(1).shape);
  Shape shape(x.shape.begin(), x.shape.begin() + axis);
  const Shape& indices = node.operand_type(1).shape;
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  return {{x.dtype, std::move(shape), {}}};
}
loops::Kernel lower_take(const Node& node) {
  const auto axis = node.attributes<Axis>().axis;
  const auto rank = static_cast<ptrdiff_t>(node.operand_type(1).rank());
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  const Index which(index.begin() + axis, index.begin() + axis + rank);
  Index at(index.begin(), index.begin() + axis);
  at.push_back(kernel.bind(kernel.load(1, which), node.operand_type(0).shape[static_cast<size_t>(axis)]));
  at.insert(at.end(), index.begin() + axis + rank, index.end());
  kernel.store(index, kernel.load(0, at));
  return kernel.finish();
}
Samples take_samples() {
  return {sample({f32({7, 4}), i64({batch(), length()}, 0, 6)}, Axis{0}),
          sample({f32({2, 5, 3}), i64({4}, 0, 4)}, Axis{1}), sample({f32({5}), i64({}, 0, 4)}, Axis{0})};
}

Types infer_gather(const Node& node) {
  require_indices_along(node, node.attributes<Axis>().axis);
  return {{node.operand_type(0).dtype, node.operand_type(1).shape, {}}};
}
loops::Kernel lower_gather(const Node& node) {
  const auto axis = static_cast<size_t>(node.attributes<Axis>().axis);
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  Index at = index;
  at[axis] = kernel.bind(kernel.load(1, index), node.operand_type(0).shape[axis]);
  kernel.store(index, kernel.load(0, at));
  return kernel.finish();
}
Samples gather_samples() {
  return {sample({f32({3, 5}), i64({3, 2}, 0, 4)}, Axis{1}),
          sample({f32({4, length()}), i64({2, length()}, 0, 3)}, Axis{0})};
}

constexpr Op gather_op(std::string_view name, std::string_view summary, Types (*infer)(const Node&),
                       loops::Kernel (*lower)(const Node&), Samples (*samples)()) {
  return Op{.name = name,
            .summary = summary,
            .operands = kGatherOperands,
            .attributes = attribute_schema<Axis>(),
            .traits = Trait::kView,
            .infer = infer,
            .lower = lower,
            .samples = samples};
}

}  // namespace

constinit const Op take = gather_op("take", "slices of x along an axis, one per index (embedding: axis 0)",
                                    infer_take, lower_take, take_samples);
constinit const Op gather =
    gather_op("gather", "one element of x per index along an axis, at the same position in other dims",
              infer_gather, lower_gather, gather_samples);
}  // namespace ingot::core::ops
