// SPDX-License-Identifier: Apache-2.0
// Products of mixtures of experts. "offs" has the end of each group: it is data.
#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"

namespace ingot::core::aten {
namespace {

// Torch leaves rows behind the last group undefined, or zero: here they are zero.
core::Value* grouped_product(Call& call, core::Value* rows, core::Value* transposed_weights) {
  core::Value* ends = call.tensor("offs");
  call.require(rows->type.rank() == 2 && transposed_weights->type.rank() == 3 && ends->type.rank() == 1,
               "matrices of other ranks");
  call.require(rows->type.dtype == transposed_weights->type.dtype, "matrices of different dtypes");
  return emit(call, ops::grouped_linear, {rows, transposed_weights, ends});
}

core::Value* transposed(Call& call, core::Value* x) {
  call.require(x->type.rank() >= 2, "operands that are not matrices");
  return swapped(call, x, x->type.rank() - 2, x->type.rank() - 1);
}

void grouped_mm_fallback(Call& call) {
  call.give(grouped_product(call, call.tensor("input"), transposed(call, call.tensor("weight"))));
}

// The groups divide the rows of the first matrix, or the columns of the second, or there is one product each.
void grouped_mm(Call& call) {
  core::Value *a = call.tensor("self"), *b = call.tensor("mat2");
  if (call.has("bias")) call.refuse("a bias");
  if (call.dtype("out_dtype").value_or(a->type.dtype) != a->type.dtype)
    call.refuse("a result of another dtype");
  const size_t rank = a->type.rank(), other = b->type.rank();
  if (rank == 2 && other == 2) call.refuse("groups of the depth, which gradients have");
  if (rank == 3 && other == 3) return call.give(emit(call, ops::matmul, {a, b}));
  if (rank == 2) return call.give(grouped_product(call, a, transposed(call, b)));
  call.give(transposed(call, grouped_product(call, transposed(call, b), a)));
}

constexpr Converter kGroupedConverters[] = {
    {"aten._grouped_mm.default", grouped_mm},
    {"transformers.grouped_mm_fallback.default", grouped_mm_fallback},
};

}  // namespace

std::span<const Converter> grouped_converters() { return kGroupedConverters; }

}  // namespace ingot::core::aten
