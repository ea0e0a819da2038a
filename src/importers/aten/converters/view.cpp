// SPDX-License-Identifier: Apache-2.0
// Views: the same elements in another shape or order, and copies that inference can omit.
#include <algorithm>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "ops/size_condition.h"

namespace ingot::core::aten {
namespace {

void identity(Call& call) { call.give(call.tensor("self")); }

void to_dtype(Call& call) {
  core::Value* x = call.tensor("self");
  call.give(converted(call.graph(), x, call.dtype("dtype").value_or(x->type.dtype)));
}
void convert_elements(Call& call) {
  call.give(converted(call.graph(), call.tensor("a"), call.dtype("dtype").value_or(DType::kF32)));
}
// Sizes with at most one -1, which is computed from the others.
Shape resolved(Call& call, Shape shape, const Shape& from) {
  const auto unknown = std::ranges::find(shape, Dim(-1));
  if (unknown == shape.end()) return shape;
  *unknown = 1;
  const Dim known = product(shape);
  if (known == Dim(0)) call.refuse("a size of -1 next to an empty dim");
  *unknown = floor_divide(product(from), known);
  return shape;
}
void reshape(Call& call) {
  core::Value* x = call.tensor("self");
  const char* name = call.has("shape") ? "shape" : "size";
  call.give(reshaped(call, x, resolved(call, call.dims(name), x->type.shape)));
}
// Removes only dims of size 1: the rank of the result requires the other sizes not to be 1.
void squeeze_axes(Call& call, const std::vector<int64_t>& axes) {
  core::Value* x = call.tensor("self");
  std::vector<int64_t> ones;
  for (const int64_t axis : axes) {
    if (x->type.rank() == 0) continue;
    const Dim& size = x->type.shape[static_cast<size_t>(axis)];
    if (size == Dim(1)) ones.push_back(axis);
    if (!size.is_constant())
      ops::add_check(call.graph(), CheckKind::kGuard, compare(Predicate::Kind::kNotEqual, size, 1));
  }
  call.give(without_axes(call, x, ones));
}
void squeeze_dims(Call& call) {
  const size_t rank = call.tensor("self")->type.rank();
  squeeze_axes(call, call.integers("dim").empty() ? std::vector<int64_t>{} : call.axes("dim", rank));
}
void unsqueeze(Call& call) {
  core::Value* x = call.tensor("self");
  call.give(unsqueezed(call, x, call.axis("dim", x->type.rank() + 1)));
}

void permute(Call& call) {
  core::Value* x = call.tensor("self");
  const auto rank = static_cast<int64_t>(x->type.rank());
  std::vector<int64_t> order = call.integers("dims");
  for (int64_t& axis : order) axis = axis < 0 ? axis + rank : axis;
  call.give(transposed(call, x, std::move(order)));
}
void transpose(Call& call) {
  core::Value* x = call.tensor("self");
  const size_t rank = x->type.rank();
  call.give(swapped(call, x, call.axis("dim0", rank), call.axis("dim1", rank)));
}
void expand(Call& call) {
  core::Value* x = call.tensor("self");
  Shape shape = call.dims("size");
  const size_t added = shape.size() - x->type.rank();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == Dim(-1) && i >= added) shape[i] = x->type.shape[i - added];
  }
  call.give(expanded(call, x, std::move(shape)));
}

constexpr Converter kViewConverters[] = {
    {"aten._to_copy.default", to_dtype},
    {"aten.alias.default", identity},
    {"aten.clone.default", identity},
    {"aten.conj.default", identity},
    {"aten.conj_physical.default", identity},
    {"aten.contiguous.default", identity},
    {"aten.detach.default", identity},
    {"aten.expand.default", expand},
    {"aten.lift_fresh.default", identity},
    {"aten.permute.default", permute},
    {"aten.positive.default", identity},
    {"aten.real.default", identity},
    {"aten.reshape.default", reshape},
    {"aten.resolve_conj.default", identity},
    {"aten.resolve_neg.default", identity},
    {"aten.squeeze.dims", squeeze_dims},
    {"aten.to.device", to_dtype},
    {"aten.to.dtype", to_dtype},
    {"aten.to.dtype_layout", to_dtype},
    {"aten.to.prim_Device", to_dtype},
    {"aten.to.prim_dtype", to_dtype},
    {"aten.transpose.int", transpose},
    {"aten.unsqueeze.default", unsqueeze},
    {"prims.convert_element_type.default", convert_elements},
};

}  // namespace

std::span<const Converter> view_converters() { return kViewConverters; }

}  // namespace ingot::core::aten
