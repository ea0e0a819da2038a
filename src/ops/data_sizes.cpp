// SPDX-License-Identifier: Apache-2.0
#include "ops/data_sizes.h"

#include "ops/infer.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kSizeOperands[] = {{"size", DTypeSet::kIndex}};
constexpr Operand kNonzeroOperands[] = {{"mask", DTypeSet::kBool}, {"count", DTypeSet::kIndex}};

Types infer_bind_size(const Node& node) {
  require_rank(node, 0, 0);
  require(node.operand_type(0).dtype == DType::kI64, node, "a size is an i64");
  require(node.attributes<DataSize>().size.is_symbol(), node, "only a symbol can be bound");
  return infer_same(node);
}

Types infer_nonzero(const Node& node) {
  require_rank(node, 1, 0);
  const auto rank = static_cast<int64_t>(node.operand_type(0).rank());
  return {TensorType{DType::kI64, {node.attributes<DataSize>().size, rank}, {}}};
}

// Samples have no data of their own: symbols that tests bind to 3, and masks that are true everywhere.
Samples bind_size_samples() { return {sample({i64({}, 3, 3)}, DataSize{batch()})}; }
Samples nonzero_samples() {
  const auto all_true = [](Shape shape) { return tensor(DType::kBool, std::move(shape), 1, 1); };
  return {sample({all_true({3, 5}), i64({}, 15, 15)}, DataSize{15}),
          sample({all_true({batch()}), i64({}, 3, 3)}, DataSize{batch()}),
          sample({all_true({}), i64({}, 1, 1)}, DataSize{1}),
          sample({all_true({2, 0, 3}), i64({}, 0, 0)}, DataSize{0})};
}

}  // namespace

constinit const Op bind_size = {.name = "bind_size",
                                .summary = "makes a computed size the value of a symbol, and returns it",
                                .operands = kSizeOperands,
                                .attributes = attribute_schema<DataSize>(),
                                .traits = Trait::kSideEffect | Trait::kBindsSize,
                                .infer = infer_bind_size,
                                .routine = "bind_size",
                                .samples = bind_size_samples};
constinit const Op nonzero = {
    .name = "nonzero",
    .summary = "the indices of the true elements, one row per element; `count` is how many there are",
    .operands = kNonzeroOperands,
    .attributes = attribute_schema<DataSize>(),
    .infer = infer_nonzero,
    .routine = "nonzero",
    .samples = nonzero_samples};

}  // namespace ingot::core::ops
