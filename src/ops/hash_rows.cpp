// SPDX-License-Identifier: Apache-2.0
// Hashes that tell tensors apart bit by bit.
#include "ops/infer.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kHashedOperands[] = {{"x", DTypeSet::kNumeric}};

Types infer_hash_rows(const Node& node) {
  const TensorType& x = node.operand_type(0);
  require(x.dtype == DType::kF64 || x.dtype == DType::kI64, node, "the dtype must be f64 or i64");
  require(x.rank() > 0, node, "x has no rows");
  return {TensorType{DType::kU64, {x.shape.begin(), x.shape.end() - 1}, {}}};
}
Samples hash_rows_samples() {
  return {sample({tensor(DType::kF64, {3, 5}, -2, 2)}), sample({i64({batch(), 4}, -9, 9)}),
          sample({i64({7}, -9, 9)})};
}

}  // namespace

constinit const Op hash_rows = {.name = "hash_rows",
                                .summary = "the exclusive or of the 64 bits of each row's elements",
                                .operands = kHashedOperands,
                                .infer = infer_hash_rows,
                                .routine = "hash_rows",
                                .samples = hash_rows_samples};

}  // namespace ingot::core::ops
