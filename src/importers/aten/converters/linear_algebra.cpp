// SPDX-License-Identifier: Apache-2.0
// Linear algebra by a few factorizations. Matrices are the last two dims; batches broadcast.
#include "ops/linear_algebra.h"

#include <algorithm>
#include <limits>

#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/terms.h"
#include "ops/assertion.h"
#include "ops/axis.h"
#include "ops/select.h"
#include "ops/sort.h"
#include "ops/window.h"

namespace ingot::core::aten {
namespace {

const Dim& rows_of(const core::Value* x) { return x->type.shape[x->type.rank() - 2]; }
const Dim& columns_of(const core::Value* x) { return x->type.shape.back(); }
int64_t last_axis(const core::Value* x) { return static_cast<int64_t>(x->type.rank()) - 1; }
core::Value* matrices(Call& call, std::string_view name) {
  core::Value* x = call.tensor(name);
  call.require(x->type.rank() >= 2, "a matrix without two dims");
  return x;
}
core::Value* turned(Call& call, core::Value* x) {
  return swapped(call, x, x->type.rank() - 2, x->type.rank() - 1);
}
core::Value* product(Call& call, core::Value* a, core::Value* b) { return emit(call, ops::matmul, {a, b}); }
Shape with_last(const Shape& batch, std::initializer_list<Dim> last) {
  Shape shape = batch;
  shape.insert(shape.end(), last.begin(), last.end());
  return shape;
}
Shape batch_of(Call& call, const Shape& shape, size_t last) {
  call.require(shape.size() >= last, "a result with too few dims");
  return {shape.begin(), shape.end() - static_cast<ptrdiff_t>(last)};
}
core::Value* in_batch(Call& call, core::Value* x, const Shape& batch) {
  call.require(x->type.rank() >= 2, "a matrix without two dims");
  return expanded(call, x, with_last(batch, {rows_of(x), columns_of(x)}));
}
core::Value* kept_triangle(Call& call, core::Value* x, bool upper, int64_t diagonal = 0) {
  return emit(call, ops::triangle, {x}, ops::Triangle{diagonal, upper});
}
// [rows, columns]: true where both indices are equal.
Term is_diagonal(Call& call, const Dim& rows, const Dim& columns) {
  const Term i(call, unsqueezed(call, counting(call, rows), 1)), j(call, counting(call, columns));
  return i.apply(ops::equal, j);
}
core::Value* identity(Call& call, const Dim& size, DType dtype) {
  return is_diagonal(call, size, size).to(dtype);
}
void give_empty(Call& call, size_t index, DType dtype) { call.give(index, filled(call, {0}, 0, dtype)); }
core::Value* with_columns(Call& call, core::Value* x, const Dim& columns) {
  const size_t axis = x->type.rank() - 1;
  if (columns_of(x) == columns) return x;
  const Dim present = minimum(columns_of(x), columns);
  x = sliced(call, x, axis, 0, present);
  Shape missing = x->type.shape;
  missing.back() = columns - present;
  return concatenated(call, {x, filled(call, missing, 0, x->type.dtype)}, axis);
}

core::Value* solved(Call& call, core::Value* a, core::Value* b, ops::TriangularSolve triangle) {
  return emit(call, ops::triangular_solve, {a, b}, triangle);
}
constexpr ops::TriangularSolve kUpperTriangle{true, false}, kLowerTriangle{false, false};

// ---- LU ----

struct Lu {
  core::Value *lu, *pivots, *info;
};
Lu factorized(Call& call, core::Value* x) {
  const auto& results = emit(call, ops::lu_factor, {x})->producer->results;
  return {results[0], results[1], results[2]};
}
core::Value* order_of(Call& call, core::Value* lu, core::Value* pivots) {
  return emit(call, ops::row_order, {lu, pivots});
}
core::Value* with_rows(Call& call, core::Value* x, core::Value* order) {
  const size_t axis = x->type.rank() - 2;
  core::Value* index = expanded(call, unsqueezed(call, order, axis + 1), x->type.shape);
  return emit(call, ops::gather, {x, index}, ops::Axis{static_cast<int64_t>(axis)});
}
// The x of a x = b, or of a^T x = b if `adjoint`, for x[order] = l u.
core::Value* solved_by_lu(Call& call, const Lu& a, core::Value* b, bool adjoint) {
  const Shape batch = batch_of(call, b->type.shape, 2);
  core::Value* lu = in_batch(call, a.lu, batch);
  core::Value* order = expanded(call, order_of(call, a.lu, a.pivots), with_last(batch, {rows_of(a.lu)}));
  if (!adjoint) {
    core::Value* y = solved(call, lu, with_rows(call, b, order), {false, true});
    return solved(call, lu, y, kUpperTriangle);
  }
  lu = turned(call, lu);
  core::Value* z = solved(call, lu, solved(call, lu, b, kLowerTriangle), {true, true});
  const core::Node* sorted = call.graph().add(ops::sort, {order}, ops::Sort{last_axis(order), false});
  return with_rows(call, z, sorted->results[1]);
}
// Unless all of `info` is 0, the run ends.
void check(Call& call, core::Value* info, const std::string& message) {
  call.graph().add(ops::assert_true, {equal(Term(call, info), 0)}, ops::Assertion{message});
}
void check_if_asked(Call& call, core::Value* info, const char* message) {
  if (call.flag("check_errors")) check(call, info, message);
}
void check_errors(Call& call) {
  const std::string api = call.text("api_name");
  const bool definite = api.find("cholesky") != std::string::npos;
  check(call, call.tensor("info"),
        api + (definite ? ": a matrix is not positive definite" : ": a matrix is singular"));
}

void lu_factor(Call& call) {
  if (!call.flag("pivot")) call.refuse("a factorization without pivots");
  const Lu found = factorized(call, matrices(call, "A"));
  check_if_asked(call, found.info, "linalg.lu_factor: a matrix is singular");
  call.give(0, found.lu);
  call.give(1, found.pivots);
  call.give(2, found.info);
}
void give_unpacked(Call& call, core::Value* lu, core::Value* pivots, bool with_data, bool with_pivots) {
  const Dim rows = rows_of(lu), columns = columns_of(lu), small = minimum(rows, columns);
  const size_t rank = lu->type.rank();
  if (with_pivots) {
    core::Value* order = unsqueezed(call, order_of(call, lu, pivots), rank - 2);  // [..., 1, rows]
    const Term at(call, unsqueezed(call, counting(call, rows), 1));
    call.give(0, at.apply(ops::equal, Term(call, order)).to(lu->type.dtype));
  } else {
    give_empty(call, 0, lu->type.dtype);
  }
  if (!with_data) {
    give_empty(call, 1, lu->type.dtype);
    return give_empty(call, 2, lu->type.dtype);
  }
  const Term below(call, kept_triangle(call, sliced(call, lu, rank - 1, 0, small), false, -1));
  call.give(1, below + is_diagonal(call, rows, small).to(lu->type.dtype));
  call.give(2, kept_triangle(call, sliced(call, lu, rank - 2, 0, small), true));
}
void lu(Call& call) {
  if (!call.flag("pivot")) call.refuse("a factorization without pivots");
  const Lu found = factorized(call, matrices(call, "A"));
  give_unpacked(call, found.lu, found.pivots, true, true);
}
void lu_unpack(Call& call) {
  give_unpacked(call, matrices(call, "LU_data"), call.tensor("LU_pivots"), call.flag("unpack_data"),
                call.flag("unpack_pivots"));
}
void lu_solve(Call& call) {
  const Lu given{matrices(call, "LU"), call.tensor("pivots"), nullptr};
  const Shape batch = batch_of(call, call.result_meta().shape, 2);
  core::Value* b = in_batch(call, matrices(call, "B"), batch);
  const bool adjoint = call.flag("adjoint");
  if (call.flag("left")) return call.give(solved_by_lu(call, given, b, adjoint));
  call.give(turned(call, solved_by_lu(call, given, turned(call, b), !adjoint)));
}
void solve(Call& call) {
  core::Value *a = matrices(call, "A"), *b = call.tensor("B");
  const bool is_left = call.flag("left");
  const size_t result_rank = call.result_meta().shape.size();
  const bool is_vector = result_rank + 1 == a->type.rank() || b->type.rank() == 1;
  const Shape batch = batch_of(call, call.result_meta().shape, is_vector ? 1 : 2);
  if (is_vector) b = unsqueezed(call, b, b->type.rank());
  const Lu found = factorized(call, a);
  b = in_batch(call, b, batch);
  core::Value* x = is_left || is_vector ? solved_by_lu(call, found, b, false)
                                        : turned(call, solved_by_lu(call, found, turned(call, b), true));
  check_if_asked(call, found.info, "linalg.solve: a matrix is singular");
  call.give(0, is_vector ? without_axes(call, x, {last_axis(x)}) : x);
  call.give(1, found.lu);
  call.give(2, found.pivots);
  call.give(3, found.info);
}
void inverse(Call& call) {
  core::Value* a = matrices(call, "A");
  const Lu found = factorized(call, a);
  core::Value* b =
      in_batch(call, identity(call, rows_of(a), a->type.dtype), batch_of(call, a->type.shape, 2));
  check_if_asked(call, found.info, "linalg.inv: a matrix is singular");
  call.give(0, solved_by_lu(call, found, b, false));
  call.give(1, found.info);
}

// The diagonal of u, between ones; and 1 or -1 for the exchanges of rows.
struct Determinant {
  Lu found;
  Term diagonal, parity;
};
Determinant determinant_of(Call& call) {
  core::Value* a = matrices(call, "A");
  const Lu found = factorized(call, a);
  const Term u(call, found.lu);
  const Term diagonal = is_diagonal(call, rows_of(a), rows_of(a)).choose(u, u.constant(1));
  const Term in_place(call, converted(call.graph(), counting(call, rows_of(a)), DType::kI32));
  const Term moved = !Term(call, found.pivots).apply(ops::equal, in_place + 1);
  const Term parity =
      moved.choose(u.constant(-1), u.constant(1)).reduce(ops::product, {last_axis(found.pivots)});
  return {found, diagonal, parity};
}
std::vector<int64_t> matrix_axes(const Term& x) {
  const auto rank = static_cast<int64_t>(x.shape().size());
  return {rank - 2, rank - 1};
}
void determinant(Call& call) {
  const Determinant found = determinant_of(call);
  call.give(0, found.diagonal.reduce(ops::product, matrix_axes(found.diagonal)) * found.parity);
  call.give(1, found.found.lu);
  call.give(2, found.found.pivots);
}
void log_determinant(Call& call) {
  const Determinant found = determinant_of(call);
  const std::vector<int64_t> axes = matrix_axes(found.diagonal);
  call.give(0, found.diagonal.apply(ops::sign).reduce(ops::product, axes) * found.parity);
  call.give(1, found.diagonal.apply(ops::absolute).apply(ops::log).reduce(ops::sum, axes));
  call.give(2, found.found.lu);
  call.give(3, found.found.pivots);
}

// ---- triangles ----

core::Value* cholesky_factor(Call& call, bool checks) {
  core::Value* x = emit(call, ops::cholesky, {matrices(call, "self")}, ops::ReadTriangle{call.flag("upper")});
  if (checks) check(call, x->producer->results[1], "cholesky: a matrix is not positive definite");
  return x;
}
void cholesky(Call& call) { call.give(cholesky_factor(call, true)); }
void cholesky_with_info(Call& call) {
  core::Value* x = cholesky_factor(call, call.flag("check_errors"));
  call.give(0, x);
  call.give(1, x->producer->results[1]);
}
core::Value* solved_by_cholesky(Call& call, core::Value* factor, core::Value* b) {
  core::Value* other = turned(call, factor);
  if (call.flag("upper")) std::swap(factor, other);  // now lower
  return solved(call, other, solved(call, factor, b, kLowerTriangle), kUpperTriangle);
}
void cholesky_solve(Call& call) {
  const Shape batch = batch_of(call, call.result_meta().shape, 2);
  core::Value* b = in_batch(call, matrices(call, "self"), batch);
  call.give(solved_by_cholesky(call, in_batch(call, matrices(call, "input2"), batch), b));
}
void cholesky_inverse(Call& call) {
  core::Value* x = matrices(call, "self");
  core::Value* one =
      in_batch(call, identity(call, rows_of(x), x->type.dtype), batch_of(call, x->type.shape, 2));
  call.give(solved_by_cholesky(call, x, one));
}
void solve_triangular(Call& call) {
  const Shape batch = batch_of(call, call.result_meta().shape, 2);
  core::Value* a = in_batch(call, matrices(call, "self"), batch);
  core::Value* b = in_batch(call, matrices(call, "B"), batch);
  const bool upper = call.flag("upper"), unit = call.flag("unitriangular");
  if (call.flag("left")) return call.give(solved(call, a, b, {upper, unit}));
  call.give(turned(call, solved(call, turned(call, a), turned(call, b), {!upper, unit})));
}
void triangular_solve(Call& call) {
  const Shape batch = batch_of(call, call.result_meta().shape, 2);
  core::Value* a = in_batch(call, matrices(call, "A"), batch);
  core::Value* b = in_batch(call, matrices(call, "self"), batch);
  const bool transposed = call.flag("transpose"), upper = call.flag("upper") != transposed;
  call.give(0, solved(call, transposed ? turned(call, a) : a, b, {upper, call.flag("unitriangular")}));
  call.give(1, a);
}

// ---- orthogonal matrices ----

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
core::Node* eigen(Call& call, core::Value* x, bool upper) {
  return call.graph().add(ops::symmetric_eigen, {x}, ops::ReadTriangle{upper});
}
core::Node* singular(Call& call, core::Value* x, bool full) {
  return call.graph().add(ops::singular_values, {x}, ops::SingularValues{full});
}
void symmetric_eigen(Call& call) {
  const core::Node* found = eigen(call, matrices(call, "A"), reads_upper(call));
  call.give(0, found->results[0]);
  if (call.flag("compute_v")) return call.give(1, found->results[1]);
  give_empty(call, 1, found->results[1]->type.dtype);
}
void singular_values(Call& call) {
  const bool has_vectors = call.flag("compute_uv");
  const core::Node* found = singular(call, matrices(call, "A"), has_vectors && call.flag("full_matrices"));
  for (const size_t i : {0, 1, 2}) {
    if (i == 1 || has_vectors) {
      call.give(i, found->results[i]);
    } else {
      give_empty(call, i, found->results[i]->type.dtype);
    }
  }
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
    const core::Node* found = eigen(call, x, false);
    const Term values(call, found->results[0]);
    core::Value* vectors = found->results[1];
    const Term largest = values.apply(ops::absolute).reduce(ops::reduce_maximum, {last_axis(values)}, true);
    const Term scaled =
        Term(call, vectors) *
        Term(call, unsqueezed(call, inverted(call, values, largest, longest), x->type.rank() - 2));
    return call.give(product(call, scaled, turned(call, vectors)));
  }
  const core::Node* found = singular(call, x, false);
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

constexpr Converter kLinearAlgebraConverters[] = {
    {"aten._linalg_check_errors.default", check_errors},
    {"aten._linalg_det.default", determinant},
    {"aten._linalg_eigh.default", symmetric_eigen},
    {"aten._linalg_slogdet.default", log_determinant},
    {"aten._linalg_solve_ex.default", solve},
    {"aten._linalg_svd.default", singular_values},
    {"aten.cholesky.default", cholesky},
    {"aten.cholesky_inverse.default", cholesky_inverse},
    {"aten.cholesky_solve.default", cholesky_solve},
    {"aten.geqrf.default", reflections},
    {"aten.linalg_cholesky_ex.default", cholesky_with_info},
    {"aten.linalg_householder_product.default", householder_product},
    {"aten.linalg_inv_ex.default", inverse},
    {"aten.linalg_lu.default", lu},
    {"aten.linalg_lu_factor_ex.default", lu_factor},
    {"aten.linalg_lu_solve.default", lu_solve},
    {"aten.linalg_matrix_exp.default", matrix_exponential},
    {"aten.linalg_pinv.atol_rtol_tensor", pseudo_inverse},
    {"aten.linalg_qr.default", qr},
    {"aten.linalg_solve_triangular.default", solve_triangular},
    {"aten.lu_unpack.default", lu_unpack},
    {"aten.ormqr.default", multiply_by_reflections},
    {"aten.triangular_solve.default", triangular_solve},
};

}  // namespace

std::span<const Converter> linear_algebra_converters() { return kLinearAlgebraConverters; }

}  // namespace ingot::core::aten
