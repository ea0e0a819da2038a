// SPDX-License-Identifier: Apache-2.0
// Factorizations into triangular matrices, by halves, so that most of the work is products of matrices.
#include <algorithm>
#include <numeric>

#include "routines/matrices.h"

namespace ingot::core::routines {
namespace {

constexpr Eigen::Index kSmall = 8;           // columns that are factorized one by one
constexpr Eigen::Index kSmallTriangle = 16;  // triangles that are not halved

// b becomes the solution x of t x = b.
template <unsigned Triangle, typename Given>
void solve_triangle(const ConstRefOf<Given>& t, RefOf<Given> b) {
  const Eigen::Index size = t.rows(), half = size / 2, others = size - half;
  if (size <= kSmallTriangle) return t.template triangularView<Triangle>().solveInPlace(b);
  const auto first = t.topLeftCorner(half, half), last = t.bottomRightCorner(others, others);
  auto top = b.topRows(half), bottom = b.bottomRows(others);
  if constexpr ((Triangle & Eigen::Lower) != 0) {
    solve_triangle<Triangle, Given>(first, top);
    add_product<Given>(bottom, -1, {t.bottomLeftCorner(others, half)}, {top});
    solve_triangle<Triangle, Given>(last, bottom);
  } else {
    solve_triangle<Triangle, Given>(last, bottom);
    add_product<Given>(top, -1, {t.topRightCorner(half, others)}, {bottom});
    solve_triangle<Triangle, Given>(first, top);
  }
}

// Rows `pivots[k]` and k are exchanged, in the order of k.
template <typename Given>
void exchange_rows(RefOf<Given> x, const int32_t* pivots, Eigen::Index count, Eigen::Index first) {
  for (Eigen::Index k = 0; k < count; ++k) {
    const Eigen::Index other = pivots[k] - 1 - first;
    if (other != k) x.row(k).swap(x.row(other));
  }
}

// Pivots count rows of the whole matrix from 1, as LAPACK's do; `first` is the row of x's first one. Returns
// the column, from 1, of the first pivot that is zero; 0 if there is none.
template <typename Given>
int32_t factor_columns(RefOf<Given> x, int32_t* pivots, Eigen::Index first) {
  const auto size = [](const typename Given::Scalar& element) { return pivot_size(element); };
  int32_t zero = 0;
  for (Eigen::Index k = 0; k < std::min(x.rows(), x.cols()); ++k) {
    Eigen::Index best = 0;
    x.col(k).tail(x.rows() - k).unaryExpr(size).maxCoeff(&best);
    pivots[k] = static_cast<int32_t>(first + k + best + 1);
    if (best != 0) x.row(k).swap(x.row(k + best));
    const typename Given::Scalar pivot = x(k, k);
    const Eigen::Index below = x.rows() - k - 1, right = x.cols() - k - 1;
    if (pivot == 0.0) {
      if (zero == 0) zero = static_cast<int32_t>(first + k + 1);
      continue;
    }
    x.col(k).tail(below) /= pivot;
    x.bottomRightCorner(below, right).noalias() -= x.col(k).tail(below) * x.row(k).tail(right);
  }
  return zero;
}
template <typename Given>
int32_t factor_lu(RefOf<Given> x, int32_t* pivots, Eigen::Index first) {
  const Eigen::Index rows = x.rows(), columns = x.cols(), count = std::min(rows, columns);
  if (count <= kSmall && columns <= kSmall) return factor_columns<Given>(x, pivots, first);
  const Eigen::Index half = std::max<Eigen::Index>(1, count / 2), right = columns - half;
  const int32_t zero = factor_lu<Given>(x.leftCols(half), pivots, first);
  exchange_rows<Given>(x.rightCols(right), pivots, half, first);
  auto upper_right = x.topRightCorner(half, right);
  solve_triangle<Eigen::UnitLower, Given>(x.topLeftCorner(half, half), upper_right);
  auto lower_right = x.bottomRightCorner(rows - half, right);
  add_product<Given>(lower_right, -1, {x.bottomLeftCorner(rows - half, half)}, {upper_right});
  const int32_t later = factor_lu<Given>(lower_right, pivots + half, first + half);
  exchange_rows<Given>(x.bottomLeftCorner(rows - half, half), pivots + half, count - half, first + half);
  return zero != 0 ? zero : later;
}

// The lower triangle; returns the order, from 1, of the first minor that is not positive; 0 if all are.
template <typename Given>
int32_t factor_small_cholesky(RefOf<Given> x) {
  for (Eigen::Index k = 0; k < x.rows(); ++k) {
    const Eigen::Index below = x.rows() - k - 1;
    const double square = std::real(x(k, k)) - x.row(k).head(k).squaredNorm();
    if (!(square > 0)) return static_cast<int32_t>(k + 1);
    const double root = std::sqrt(square);
    x(k, k) = root;
    x.col(k).tail(below).noalias() -= x.bottomLeftCorner(below, k) * x.row(k).head(k).adjoint();
    x.col(k).tail(below) /= root;
  }
  return 0;
}
// b becomes the x of x l^H = b.
template <typename Given>
void solve_adjoint(const ConstRefOf<Given>& l, RefOf<Given> b) {
  const Eigen::Index size = l.rows(), half = size / 2, others = size - half;
  if (size <= kSmallTriangle) {
    l.template triangularView<Eigen::Lower>().adjoint().template solveInPlace<Eigen::OnTheRight>(b);
    return;
  }
  auto left = b.leftCols(half), right = b.rightCols(others);
  solve_adjoint<Given>(l.topLeftCorner(half, half), left);
  add_product<Given>(right, -1, {left}, {l.bottomLeftCorner(others, half), true});
  solve_adjoint<Given>(l.bottomRightCorner(others, others), right);
}
// The lower triangle of x less b b^H; what is above it is lost.
template <typename Given>
void subtract_square(RefOf<Given> x, const ConstRefOf<Given>& b) {
  constexpr Eigen::Index kSmallSquare = 48;
  const Eigen::Index size = x.rows(), half = size / 2, others = size - half;
  if (size <= kSmallSquare) {
    add_product<Given>(x, -1, {b}, {b, true});
    return;
  }
  subtract_square<Given>(x.topLeftCorner(half, half), b.topRows(half));
  add_product<Given>(x.bottomLeftCorner(others, half), -1, {b.bottomRows(others)}, {b.topRows(half), true});
  subtract_square<Given>(x.bottomRightCorner(others, others), b.bottomRows(others));
}
template <typename Given>
int32_t factor_cholesky(RefOf<Given> x) {
  if (x.rows() <= kSmall) return factor_small_cholesky<Given>(x);
  const Eigen::Index half = x.rows() / 2, below = x.rows() - half;
  if (const int32_t failed = factor_cholesky<Given>(x.topLeftCorner(half, half))) return failed;
  auto left = x.bottomLeftCorner(below, half);
  auto last = x.bottomRightCorner(below, below);
  solve_adjoint<Given>(x.topLeftCorner(half, half), left);
  subtract_square<Given>(last, left);
  const int32_t failed = factor_cholesky<Given>(last);
  return failed == 0 ? 0 : failed + static_cast<int32_t>(half);
}

template <typename Given>
void run_cholesky(const RoutineCall& call) {
  require_matrices(call, kParts<Given>, kParts<Given> + 1);
  const TensorView &x = call.inputs[0], &info = call.outputs.back();
  const Parts factor = call.outputs.first(kParts<Given>);
  const Matrices sizes = matrices_of(x);
  require_fit(are_batches_of(call.inputs, x, sizes.rows, sizes.rows) && sizes.rows == sizes.columns &&
                  are_batches_of(factor, x, sizes.rows, sizes.rows) && info.dtype == DType::kI32 &&
                  has_batch_of(x, info, {}),
              "cholesky");
  const auto upper = attribute<bool>(call, "upper");
  for_each_matrix(call, sizes.count, sizes.rows * sizes.rows, [&](int64_t i) {
    Given work = read_matrix<Given>(call.inputs, i);
    if (upper) work.adjointInPlace();
    *integers_of(info, i) = factor_cholesky<Given>(work);
    work.template triangularView<Eigen::StrictlyUpper>().setZero();
    if (upper) work.adjointInPlace();
    write_matrix<Given>(factor, i, work);
  });
}

template <typename Given>
void run_lu_factor(const RoutineCall& call) {
  require_matrices(call, kParts<Given>, kParts<Given> + 2);
  const TensorView &x = call.inputs[0], &pivots = call.outputs[kParts<Given>], &info = call.outputs.back();
  const Parts lu = call.outputs.first(kParts<Given>);
  const Matrices sizes = matrices_of(x);
  const int64_t count = std::min(sizes.rows, sizes.columns);
  require_fit(are_batches_of(call.inputs, x, sizes.rows, sizes.columns) &&
                  are_batches_of(lu, x, sizes.rows, sizes.columns) && pivots.dtype == DType::kI32 &&
                  has_batch_of(x, pivots, {count}) && info.dtype == DType::kI32 && has_batch_of(x, info, {}),
              "lu_factor");
  for_each_matrix(call, sizes.count, sizes.rows * sizes.columns, [&](int64_t i) {
    Given work = read_matrix<Given>(call.inputs, i);
    *integers_of(info, i) = factor_lu<Given>(work, integers_of(pivots, i * count), 0);
    write_matrix<Given>(lu, i, work);
  });
}

// b is [batch, n, k]: the solution x of a x = b, for the triangle of a that `upper` names.
template <typename Given>
void run_triangular_solve(const RoutineCall& call) {
  require_matrices(call, 2 * kParts<Given>, kParts<Given>);
  const Parts a = call.inputs.first(kParts<Given>), b = call.inputs.last(kParts<Given>);
  const Matrices sizes = matrices_of(a[0]), right = matrices_of(b[0]);
  require_fit(are_batches_of(a, a[0], sizes.rows, sizes.rows) && sizes.rows == sizes.columns &&
                  are_batches_of(b, a[0], sizes.rows, right.columns) &&
                  are_batches_of(call.outputs, a[0], sizes.rows, right.columns),
              "triangular_solve");
  const auto upper = attribute<bool>(call, "upper"), unit = attribute<bool>(call, "unit");
  for_each_matrix(call, sizes.count, sizes.rows * (sizes.rows + right.columns), [&](int64_t i) {
    const Given triangle = read_matrix<Given>(a, i);
    Given work = read_matrix<Given>(b, i);
    if (upper && unit) solve_triangle<Eigen::UnitUpper, Given>(triangle, work);
    if (upper && !unit) solve_triangle<Eigen::Upper, Given>(triangle, work);
    if (!upper && unit) solve_triangle<Eigen::UnitLower, Given>(triangle, work);
    if (!upper && !unit) solve_triangle<Eigen::Lower, Given>(triangle, work);
    write_matrix<Given>(call.outputs, i, work);
  });
}

}  // namespace

void cholesky(const RoutineCall& call) { run_cholesky<Matrix>(call); }
void complex_cholesky(const RoutineCall& call) { run_cholesky<ComplexMatrix>(call); }
void lu_factor(const RoutineCall& call) { run_lu_factor<Matrix>(call); }
void complex_lu_factor(const RoutineCall& call) { run_lu_factor<ComplexMatrix>(call); }
void triangular_solve(const RoutineCall& call) { run_triangular_solve<Matrix>(call); }
void complex_triangular_solve(const RoutineCall& call) { run_triangular_solve<ComplexMatrix>(call); }

void row_order(const RoutineCall& call) {
  require_fit(call.inputs.size() == 2 && call.outputs.size() == 1, "row_order");
  const TensorView &lu = call.inputs[0], &pivots = call.inputs[1], &order = call.outputs[0];
  const Matrices sizes = matrices_of(lu);
  const int64_t count = std::min(sizes.rows, sizes.columns);
  require_fit(pivots.dtype == DType::kI32 && order.dtype == DType::kI64 &&
                  has_batch_of(lu, pivots, {count}) && has_batch_of(lu, order, {sizes.rows}),
              "row_order");
  for (int64_t i = 0; i < sizes.count; ++i) {
    auto* rows = reinterpret_cast<int64_t*>(order.data) + i * sizes.rows;
    std::iota(rows, rows + sizes.rows, 0);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t other = integers_of(pivots, i * count)[k] - 1;
      require_fit(other >= 0 && other < sizes.rows, "row_order");
      std::swap(rows[k], rows[other]);
    }
  }
}

}  // namespace ingot::core::routines
