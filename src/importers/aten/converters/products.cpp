// SPDX-License-Identifier: Apache-2.0
// Products and norms of vectors and matrices, composed of matrix products and reductions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/terms.h"
#include "ops/concat.h"
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
Term summed_product(const Term& a, const Term& b, int64_t axis, bool keep_dims = false) {
  return (a * b).reduce(ops::sum, {axis}, keep_dims);
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
void product_of_all(Call& call) {
  std::vector<core::Value*> values = call.tensors("tensors");
  call.require(!values.empty(), "an empty list to multiply");
  const bool row = values.front()->type.rank() == 1, column = values.back()->type.rank() == 1;
  if (row) values.front() = unsqueezed(call, values.front(), 0);
  if (column) values.back() = unsqueezed(call, values.back(), 1);
  core::Value* total = values[0];
  for (size_t i = 1; i < values.size(); ++i) total = product_of_matrices(call, total, values[i]);
  if (column) total = without_axes(call, total, {1});
  call.give(row ? without_axes(call, total, {0}) : total);
}
void matrix_power(Call& call) {
  int64_t exponent = call.integer("n");
  if (exponent < 1) call.refuse("a power below 1");
  core::Value *square = call.tensor("self"), *result = nullptr;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = result ? product_of_matrices(call, result, square) : square;
    if (exponent > 1) square = product_of_matrices(call, square, square);
  }
  call.give(result);
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

// ---- norms and distances ----
Term norm_of(Call& call, const Term& x, double order, std::vector<int64_t> axes, bool keep_dims = false) {
  return {call, emit(call, ops::norm, {x}, ops::Norm{order, std::move(axes), keep_dims})};
}
Term in_asked_dtype(Call& call) {
  const Term x = real_term(call, "self");
  return call.has("dtype") ? x.to(*call.dtype("dtype")) : x;
}
// For rows or columns: the maximum or minimum of sums of absolute values.
Term norm_by_sums(Call& call, const Term& x, double order) {
  const size_t rank = x.shape().size();
  call.require(rank >= 2, "a norm of a tensor that is not a matrix");
  const std::vector<size_t> dims =
      call.has("dim") ? call.axes_in_order("dim", rank) : std::vector{rank - 2, rank - 1};
  call.require(dims.size() == 2, "a norm of a tensor that is not a matrix");
  const auto axis = [&](size_t i) { return static_cast<int64_t>(dims[i]); };
  const int64_t added = axis(std::abs(order) == 1 ? 0 : 1), compared = axis(std::abs(order) == 1 ? 1 : 0);
  const Term sums = x.apply(ops::absolute).reduce(ops::sum, {added}, true);
  const bool is_empty = sums.shape()[static_cast<size_t>(compared)] == Dim(0);  // its norm is 0
  const Op& compare = is_empty ? ops::sum : order > 0 ? ops::reduce_maximum : ops::reduce_minimum;
  const Term extreme = sums.reduce(compare, {compared}, true);
  if (call.flag("keepdim")) return extreme;
  return {call, without_axes(call, extreme, {std::min(added, compared), std::max(added, compared)})};
}
void matrix_norm(Call& call) {
  const Term x = in_asked_dtype(call);
  const double order = call.number("ord");
  if (std::abs(order) != 1 && !std::isinf(order)) call.refuse("a norm by singular values");
  call.give(norm_by_sums(call, x, order));
}
void named_matrix_norm(Call& call) {
  if (call.text("ord") != "fro") call.refuse("a norm by singular values");
  const Term x = in_asked_dtype(call);
  call.give(norm_of(call, x, 2, reduced_axes(call, x), call.flag("keepdim")));
}
void general_norm(Call& call) {
  const Term x = in_asked_dtype(call);
  const size_t dims = call.has("dim") ? call.integers("dim").size() : x.shape().size();
  if (!call.has("ord") || dims == 1)
    return call.give(norm_of(call, x, call.has("ord") ? call.number("ord") : 2, reduced_axes(call, x),
                             call.flag("keepdim")));
  matrix_norm(call);
}
// Each operand is divided by its norm in its own dtype, or integers in that of both; then both have dims,
// even if one had none, and the wider dtype wins.
void cosine_similarity(Call& call) {
  const DType common = promoted_to_floating(call, {"x1", "x2"});
  const auto own = [&](std::string_view name) {
    const DType dtype = call.tensor(name)->type.dtype;
    return is_floating(dtype) ? dtype : common;
  };
  const DType wide = promote(own("x1"), own("x2"));
  const Shape& shape = call.result_meta().shape;
  const auto axis = static_cast<int64_t>(call.axis("dim", shape.size() + 1));
  // Only its shape matters: dims of size 1 are broadcast for the norm too.
  const Term both = Term(call, operand(call, "x1", wide)) * Term(call, operand(call, "x2", wide));
  const auto normed = [&](std::string_view name) {
    const Term x(call, expanded(call, operand(call, name, own(name)), both.shape()));
    const Term size = norm_of(call, x, 2, {axis}, true);
    return Term(call, converted(call.graph(), x / size.apply(ops::maximum, call.number("eps")), wide));
  };
  call.give(summed_product(normed("x1"), normed("x2"), axis));
}

// ---- weight norm ----
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
    {"aten.cosine_similarity.default", cosine_similarity, kComposed},
    {"aten.kron.default", kronecker, kComposed},
    {"aten.linalg_matrix_norm.default", matrix_norm, kComposed},
    {"aten.linalg_matrix_norm.str_ord", named_matrix_norm, kComposed},
    {"aten.linalg_matrix_power.default", matrix_power, kComposed},
    {"aten.linalg_multi_dot.default", product_of_all, kComposed},
    {"aten.linalg_norm.default", general_norm, kComposed},
    {"aten.linalg_norm.ord_str", named_matrix_norm, kComposed},
    {"aten.matrix_power.default", matrix_power, kComposed},
    {"aten.norm_except_dim.default", norm_except, kComposed},
    {"aten.tensordot.default", tensor_product, kComposed},
};

}  // namespace

std::span<const Converter> products_converters() { return kProductsConverters; }

}  // namespace ingot::core::aten
