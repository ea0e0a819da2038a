// SPDX-License-Identifier: Apache-2.0
// Solutions, inverses and determinants by factorization into triangles. Batches broadcast.
#include "ops/linear_algebra.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/matrices.h"
#include "ops/assertion.h"
#include "ops/axis.h"
#include "ops/sort.h"

namespace ingot::core::aten {
namespace {

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
  core::Value* x = emit(call, ops::cholesky, {matrices(call, "self")}, ops::Cholesky{call.flag("upper")});
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

constexpr Converter kLinearAlgebraConverters[] = {
    {"aten._linalg_check_errors.default", check_errors},
    {"aten._linalg_det.default", determinant},
    {"aten._linalg_slogdet.default", log_determinant},
    {"aten._linalg_solve_ex.default", solve},
    {"aten.cholesky.default", cholesky},
    {"aten.cholesky_inverse.default", cholesky_inverse},
    {"aten.cholesky_solve.default", cholesky_solve},
    {"aten.linalg_cholesky_ex.default", cholesky_with_info},
    {"aten.linalg_inv_ex.default", inverse},
    {"aten.linalg_lu.default", lu},
    {"aten.linalg_lu_factor_ex.default", lu_factor},
    {"aten.linalg_lu_solve.default", lu_solve},
    {"aten.linalg_solve_triangular.default", solve_triangular},
    {"aten.lu_unpack.default", lu_unpack},
    {"aten.triangular_solve.default", triangular_solve},
};

}  // namespace

std::span<const Converter> linear_algebra_converters() { return kLinearAlgebraConverters; }

}  // namespace ingot::core::aten
