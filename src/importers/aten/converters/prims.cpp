// SPDX-License-Identifier: Apache-2.0
// torch's primitive operators: operands have one dtype and shape, nothing is promoted or broadcast.

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "ops/generate.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/view.h"

namespace ingot::core::aten {
namespace {

template <const Op& kOp>
void prim_reduction(Call& call) {
  core::Value* x = call.tensor("inp");
  if (const auto dtype = call.dtype("output_dtype")) x = converted(call.graph(), x, *dtype);
  const std::vector<int64_t> axes =
      call.has("dims") ? call.axes("dims", x->type.rank()) : all_axes(x->type.rank());
  call.give(emit(call, kOp, {x}, ops::Reduce{axes, false}));
}

// Dim i of the operand is dim axes[i] of the result; all others repeat it.
void broadcast(Call& call) {
  core::Value* x = call.tensor("a");
  const std::vector<int64_t> axes = call.integers("broadcast_dimensions");
  const std::vector<Dim> shape = call.dims("shape");
  call.require(axes.size() == x->type.rank(), "another number of dims than the tensor's");
  Shape spread(shape.size(), 1);
  int64_t last = -1;
  for (size_t i = 0; i < axes.size(); ++i) {
    call.require(axes[i] > last && axes[i] < static_cast<int64_t>(shape.size()), "dims out of order");
    last = axes[i];
    spread[static_cast<size_t>(last)] = x->type.shape[i];
  }
  call.give(expanded(call, reshaped(call, x, spread), shape));
}
void prim_iota(Call& call) {
  const DType dtype = call.dtype("dtype").value_or(DType::kI64);
  const ops::Iota iota{call.dim("start"), call.dim("step"), call.dim("length"), DType::kI64};
  call.give(converted(call.graph(), emit(call, ops::iota, {}, iota), dtype));
}
void prim_full(Call& call) {
  call.give(filled(call, call.dims("shape"), call.number("fill_value"), *call.dtype("dtype")));
}

constexpr Converter kPrimsConverters[] = {
    {"prims.broadcast_in_dim.default", broadcast},
    {"prims.full.default", prim_full},
    {"prims.iota.default", prim_iota},
    {"prims.prod.default", prim_reduction<ops::product>},
};

}  // namespace

std::span<const Converter> prims_converters() { return kPrimsConverters; }

}  // namespace ingot::core::aten
