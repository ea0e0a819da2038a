// SPDX-License-Identifier: Apache-2.0
// Orthogonal factorizations, eigenvalues and singular values, and functions of matrices by these.
#include <limits>

#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/matrices.h"
#include "ops/linear_algebra.h"

namespace ingot::core::aten {
namespace {

struct Reflections {
  core::Value *vectors, *scales;
};
Reflections reflections_of(Call& call, core::Value* x) {
  const auto& results = emit(call, ops::householder_qr, {x})->producer->results;
  return {results[0], results[1]};
}
core::Value* orthogonal(Call& call, const Reflections& given, const Dim& columns) {
  return emit(call, ops::householder_product, {with_columns(call, given.vectors, columns), given.scales});
}
void qr(Call& call) {
  core::Value* x = matrices(call, "A");
  const Reflections found = reflections_of(call, x);
  const std::string mode = call.text("mode");
  const Dim rows = rows_of(x);
  const Dim count = mode == "complete" ? rows : minimum(rows, columns_of(x));
  if (mode == "r") {
    give_empty(call, 0, x->type.dtype);
  } else {
    call.give(0, orthogonal(call, found, count));
  }
  call.give(1, kept_triangle(call, sliced(call, found.vectors, x->type.rank() - 2, 0, count), true));
}
void reflections(Call& call) {
  const Reflections found = reflections_of(call, matrices(call, "self"));
  call.give(0, found.vectors);
  call.give(1, found.scales);
}
void householder_product(Call& call) {
  call.give(emit(call, ops::householder_product, {matrices(call, "input"), call.tensor("tau")}));
}
void multiply_by_reflections(Call& call) {
  core::Value *x = matrices(call, "self"), *other = matrices(call, "input3");
  core::Value* q = orthogonal(call, {x, call.tensor("input2")}, rows_of(x));
  if (call.flag("transpose")) q = turned(call, q);
  call.give(call.flag("left") ? product(call, q, other) : product(call, other, q));
}

// ---- eigenvalues and singular values ----

bool reads_upper(Call& call) {
  const std::string which = call.text("UPLO");
  return which == "U" || which == "u";
}
core::Node* eigen(Call& call, core::Value* x, bool upper, bool vectors) {
  return call.graph().add(ops::symmetric_eigen, {x}, ops::SymmetricEigen{upper, vectors});
}
core::Node* singular(Call& call, core::Value* x, bool full, bool vectors) {
  return call.graph().add(ops::singular_values, {x}, ops::SingularValues{full, vectors});
}
void symmetric_eigen(Call& call) {
  core::Value* x = matrices(call, "A");
  const core::Node* found = eigen(call, x, reads_upper(call), call.flag("compute_v"));
  call.give(0, found->results[0]);
  if (call.flag("compute_v")) return call.give(1, found->results[1]);
  give_empty(call, 1, x->type.dtype);
}
void singular_values(Call& call) {
  core::Value* x = matrices(call, "A");
  if (call.flag("compute_uv")) {
    const core::Node* found = singular(call, x, call.flag("full_matrices"), true);
    for (const size_t i : {0, 1, 2}) call.give(i, found->results[i]);
    return;
  }
  call.give(1, singular(call, x, false, false)->results[0]);
  give_empty(call, 0, x->type.dtype);
  give_empty(call, 2, x->type.dtype);
}

// 1 / value where its size is above what torch takes for zero; the others are 0. `largest`: of all sizes,
// [..., 1].
Term inverted(Call& call, const Term& value, const Term& largest, const Dim& longest) {
  const bool is_double = value.dtype() == DType::kF64;
  const double epsilon =
      is_double ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const auto given = [&](std::string_view name) {
    const Term tolerance(call, converted(call.graph(), call.tensor(name), value.dtype()));
    return Term(call, unsqueezed(call, tolerance, tolerance.shape().size()));
  };
  const Term absolute = call.has("atol") ? given("atol") : value.constant(0);
  Term relative(call, size_scalar(call.graph(), longest, value.dtype()));
  relative = relative * epsilon;
  if (call.has("rtol")) {
    relative = given("rtol");
  } else if (call.has("atol")) {
    relative = (absolute > 0).choose(value.constant(0), relative);
  }
  const Term limit = absolute.apply(ops::maximum, relative * largest);
  const Term is_large = limit < value.apply(ops::absolute);
  return is_large.choose(value.constant(1) / value, value.constant(0));
}
void pseudo_inverse(Call& call) {
  core::Value* x = matrices(call, "self");
  const Dim longest = maximum(rows_of(x), columns_of(x));
  if (rows_of(x) == Dim(0) || columns_of(x) == Dim(0))
    return call.give(filled(call, call.result_meta().shape, 0, x->type.dtype));
  if (call.flag("hermitian")) {
    const core::Node* found = eigen(call, x, false, true);
    const Term values(call, found->results[0]);
    core::Value* vectors = found->results[1];
    const Term largest = values.apply(ops::absolute).reduce(ops::reduce_maximum, {last_axis(values)}, true);
    const Term scaled =
        Term(call, vectors) *
        Term(call, unsqueezed(call, inverted(call, values, largest, longest), x->type.rank() - 2));
    return call.give(product(call, scaled, turned(call, vectors)));
  }
  const core::Node* found = singular(call, x, false, true);
  const Term values(call, found->results[1]);
  const Term largest(call, sliced(call, values, values.shape().size() - 1, 0, 1));
  const Term v(call, turned(call, found->results[2]));
  const Term scaled =
      v * Term(call, unsqueezed(call, inverted(call, values, largest, longest), x->type.rank() - 2));
  call.give(product(call, scaled, turned(call, found->results[0])));
}
void matrix_exponential(Call& call) {
  call.give(emit(call, ops::matrix_exponential, {matrices(call, "self")}));
}

constexpr Converter kDecompositionConverters[] = {
    {"aten._linalg_eigh.default", symmetric_eigen},
    {"aten._linalg_svd.default", singular_values},
    {"aten.geqrf.default", reflections},
    {"aten.linalg_householder_product.default", householder_product},
    {"aten.linalg_matrix_exp.default", matrix_exponential},
    {"aten.linalg_pinv.atol_rtol_tensor", pseudo_inverse},
    {"aten.linalg_qr.default", qr},
    {"aten.ormqr.default", multiply_by_reflections},
};

}  // namespace

std::span<const Converter> decompositions_converters() { return kDecompositionConverters; }

}  // namespace ingot::core::aten
