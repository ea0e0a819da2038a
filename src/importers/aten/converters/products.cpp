// SPDX-License-Identifier: Apache-2.0
// Tensor products, and weights divided by their norms.
#include <algorithm>

#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/terms.h"
#include "ops/statistics.h"

namespace ingot::core::aten {
namespace {

Term product_of_matrices(Call& call, core::Value* a, core::Value* b) {
  return {call, emit(call, ops::matmul, {a, b})};
}
std::pair<Term, Term> promoted_pair(Call& call, std::string_view a, std::string_view b) {
  const DType dtype = promoted(call, {a, b});
  return {{call, operand(call, a, dtype)}, {call, operand(call, b, dtype)}};
}

// Sums over the named dims of both; the remaining dims of the first precede those of the second.
core::Value* as_matrix(Call& call, core::Value* x, std::string_view dims, bool inner_last, Shape& outer) {
  const std::vector<size_t> inner = call.axes_in_order(dims, x->type.rank());
  Dim size = 1;
  for (const size_t axis : inner) size = size * extent(call, x, axis);
  std::vector<int64_t> order;
  const size_t before = outer.size();
  for (size_t axis = 0; axis < x->type.rank(); ++axis) {
    if (std::ranges::find(inner, axis) != inner.end()) continue;
    order.push_back(static_cast<int64_t>(axis));
    outer.push_back(x->type.shape[axis]);
  }
  const Dim rest = product(std::span(outer).subspan(before));
  order.insert(inner_last ? order.end() : order.begin(), inner.begin(), inner.end());
  x = transposed(call, x, std::move(order));
  return reshaped(call, x, inner_last ? Shape{rest, size} : Shape{size, rest});
}
void tensor_product(Call& call) {
  Shape shape;
  core::Value* a = as_matrix(call, call.tensor("self"), "dims_self", true, shape);
  core::Value* b = as_matrix(call, call.tensor("other"), "dims_other", false, shape);
  call.give(reshaped(call, product_of_matrices(call, a, b), shape));
}
// Each element of the first times the whole second.
void kronecker(Call& call) {
  const auto [a, b] = promoted_pair(call, "self", "other");
  const size_t rank = std::max(a.shape().size(), b.shape().size());
  Shape left, right, joined;
  for (size_t i = 0; i < rank; ++i) {
    const auto size = [&](const Shape& shape) {
      return i + shape.size() < rank ? Dim(1) : shape[i + shape.size() - rank];
    };
    left.insert(left.end(), {size(a.shape()), 1});
    right.insert(right.end(), {1, size(b.shape())});
    joined.push_back(size(a.shape()) * size(b.shape()));
  }
  const Term spread = Term(call, reshaped(call, a, left)) * Term(call, reshaped(call, b, right));
  call.give(reshaped(call, spread, joined));
}

// ---- weights and their norms ----
Term norm_of(Call& call, const Term& x, double order, std::vector<int64_t> axes, bool keep_dims = false) {
  return {call, emit(call, ops::norm, {x}, ops::Norm{order, std::move(axes), keep_dims})};
}

std::vector<int64_t> axes_but(Call& call, const Term& x) {
  const int64_t kept = call.integer("dim");
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < static_cast<int64_t>(x.shape().size()); ++i) {
    if (i != kept) axes.push_back(i);
  }
  return axes;
}
void norm_except(Call& call) {
  const Term v = operand_term(call, "v");
  call.give(norm_of(call, v, call.number("pow"), axes_but(call, v), true));
}
void weight_norm(Call& call) {
  const Term v = operand_term(call, "v"), size = norm_of(call, v, 2, axes_but(call, v), true);
  call.give(0, v * (operand_term(call, "g") / size));
  call.give(1, size);
}

constexpr Converter kProductsConverters[] = {
    {"aten._weight_norm.default", weight_norm, kComposed},
    {"aten._weight_norm_interface.default", weight_norm, kComposed},
    {"aten.kron.default", kronecker, kComposed},
    {"aten.norm_except_dim.default", norm_except, kComposed},
    {"aten.tensordot.default", tensor_product, kComposed},
};

}  // namespace

std::span<const Converter> products_converters() { return kProductsConverters; }

}  // namespace ingot::core::aten
