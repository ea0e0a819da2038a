// SPDX-License-Identifier: Apache-2.0
// Views: the same elements in another shape or order.
#include <algorithm>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "ops/size_condition.h"

namespace ingot::core::aten {
namespace {

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
    {"aten.expand.default", expand},   {"aten.permute.default", permute},
    {"aten.reshape.default", reshape}, {"aten.squeeze.dims", squeeze_dims},
    {"aten.transpose.int", transpose}, {"aten.unsqueeze.default", unsqueeze},
};

}  // namespace

std::span<const Converter> view_converters() { return kViewConverters; }

}  // namespace ingot::core::aten
