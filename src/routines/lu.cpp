// SPDX-License-Identifier: Apache-2.0
// Factorizations into triangular matrices, by halves, so that most of the work is products of matrices.
#include <algorithm>
#include <numeric>

#include "routines/matrices.h"

namespace ingot::core::routines {
namespace {

constexpr Eigen::Index kSmall = 8;  // columns that are factorized one by one

// Rows `pivots[k]` and k are exchanged, in the order of k.
void exchange_rows(MatrixRef x, const int32_t* pivots, Eigen::Index count, Eigen::Index first) {
  for (Eigen::Index k = 0; k < count; ++k) {
    const Eigen::Index other = pivots[k] - 1 - first;
    if (other != k) x.row(k).swap(x.row(other));
  }
}

// Pivots count rows of the whole matrix from 1, as LAPACK's do; `first` is the row of x's first one. Returns
// the column, from 1, of the first pivot that is zero; 0 if there is none.
int32_t factor_columns(MatrixRef x, int32_t* pivots, Eigen::Index first) {
  int32_t zero = 0;
  for (Eigen::Index k = 0; k < std::min(x.rows(), x.cols()); ++k) {
    Eigen::Index best = 0;
    x.col(k).tail(x.rows() - k).cwiseAbs().maxCoeff(&best);
    pivots[k] = static_cast<int32_t>(first + k + best + 1);
    if (best != 0) x.row(k).swap(x.row(k + best));
    const double pivot = x(k, k);
    const Eigen::Index below = x.rows() - k - 1, right = x.cols() - k - 1;
    if (pivot == 0) {
      if (zero == 0) zero = static_cast<int32_t>(first + k + 1);
      continue;
    }
    x.col(k).tail(below) /= pivot;
    x.bottomRightCorner(below, right).noalias() -= x.col(k).tail(below) * x.row(k).tail(right);
  }
  return zero;
}
int32_t factor_lu(MatrixRef x, int32_t* pivots, Eigen::Index first) {
  const Eigen::Index rows = x.rows(), columns = x.cols(), count = std::min(rows, columns);
  if (count <= kSmall && columns <= kSmall) return factor_columns(x, pivots, first);
  const Eigen::Index half = std::max<Eigen::Index>(1, count / 2), right = columns - half;
  const int32_t zero = factor_lu(x.leftCols(half), pivots, first);
  exchange_rows(x.rightCols(right), pivots, half, first);
  auto upper_right = x.topRightCorner(half, right);
  x.topLeftCorner(half, half).triangularView<Eigen::UnitLower>().solveInPlace(upper_right);
  auto lower_right = x.bottomRightCorner(rows - half, right);
  lower_right.noalias() -= x.bottomLeftCorner(rows - half, half) * upper_right;
  const int32_t later = factor_lu(lower_right, pivots + half, first + half);
  exchange_rows(x.bottomLeftCorner(rows - half, half), pivots + half, count - half, first + half);
  return zero != 0 ? zero : later;
}

// The lower triangle; returns the order, from 1, of the first minor that is not positive; 0 if all are.
int32_t factor_small_cholesky(MatrixRef x) {
  for (Eigen::Index k = 0; k < x.rows(); ++k) {
    const Eigen::Index below = x.rows() - k - 1;
    const double square = x(k, k) - x.row(k).head(k).squaredNorm();
    if (!(square > 0)) return static_cast<int32_t>(k + 1);
    x(k, k) = std::sqrt(square);
    x.col(k).tail(below).noalias() -= x.bottomLeftCorner(below, k) * x.row(k).head(k).transpose();
    x.col(k).tail(below) /= x(k, k);
  }
  return 0;
}
int32_t factor_cholesky(MatrixRef x) {
  if (x.rows() <= kSmall) return factor_small_cholesky(x);
  const Eigen::Index half = x.rows() / 2, below = x.rows() - half;
  if (const int32_t failed = factor_cholesky(x.topLeftCorner(half, half))) return failed;
  auto left = x.bottomLeftCorner(below, half);
  x.topLeftCorner(half, half)
      .triangularView<Eigen::Lower>()
      .transpose()
      .solveInPlace<Eigen::OnTheRight>(left);
  auto last = x.bottomRightCorner(below, below);
  last.selfadjointView<Eigen::Lower>().rankUpdate(left, -1);
  const int32_t failed = factor_cholesky(last);
  return failed == 0 ? 0 : failed + static_cast<int32_t>(half);
}

bool has_shape(const TensorView& view, std::span<const int64_t> batch, std::initializer_list<int64_t> last) {
  const auto count = static_cast<ptrdiff_t>(last.size());
  return view.shape.size() == batch.size() + last.size() &&
         std::equal(batch.begin(), batch.end(), view.shape.begin()) &&
         std::equal(last.begin(), last.end(), view.shape.end() - count);
}
std::span<const int64_t> batch_of(const TensorView& view) {
  return std::span(view.shape).first(view.shape.size() - 2);
}

}  // namespace

void cholesky(const RoutineCall& call) {
  require_matrices(call, 1, 2);
  const TensorView &x = call.inputs[0], &factor = call.outputs[0], &info = call.outputs[1];
  const Matrices sizes = matrices_of(x);
  require_fit(sizes.rows == sizes.columns && factor.shape == x.shape && factor.dtype == x.dtype &&
                  info.dtype == DType::kI32 && has_shape(info, batch_of(x), {}),
              "cholesky");
  const auto upper = attribute<bool>(call, "upper");
  for_each_matrix(call, sizes.count, sizes.rows * sizes.rows, [&](int64_t i) {
    Matrix work = read_matrix(x, i);
    if (upper) work.transposeInPlace();
    *integers_of(info, i) = factor_cholesky(work);
    work.triangularView<Eigen::StrictlyUpper>().setZero();
    if (upper) work.transposeInPlace();
    write_matrix(factor, i, work);
  });
}

void lu_factor(const RoutineCall& call) {
  require_matrices(call, 1, 3);
  const TensorView &x = call.inputs[0], &lu = call.outputs[0], &pivots = call.outputs[1],
                   &info = call.outputs[2];
  const Matrices sizes = matrices_of(x);
  const int64_t count = std::min(sizes.rows, sizes.columns);
  require_fit(lu.shape == x.shape && lu.dtype == x.dtype && pivots.dtype == DType::kI32 &&
                  info.dtype == DType::kI32 && has_shape(pivots, batch_of(x), {count}) &&
                  has_shape(info, batch_of(x), {}),
              "lu_factor");
  for_each_matrix(call, sizes.count, sizes.rows * sizes.columns, [&](int64_t i) {
    Matrix work = read_matrix(x, i);
    *integers_of(info, i) = factor_lu(work, integers_of(pivots, i * count), 0);
    write_matrix(lu, i, work);
  });
}

void row_order(const RoutineCall& call) {
  require_fit(call.inputs.size() == 2 && call.outputs.size() == 1, "row_order");
  const TensorView &lu = call.inputs[0], &pivots = call.inputs[1], &order = call.outputs[0];
  const Matrices sizes = matrices_of(lu);
  const int64_t count = std::min(sizes.rows, sizes.columns);
  require_fit(pivots.dtype == DType::kI32 && order.dtype == DType::kI64 &&
                  has_shape(pivots, batch_of(lu), {count}) && has_shape(order, batch_of(lu), {sizes.rows}),
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

// b is [batch, n, k]: the solution x of a x = b, for the triangle of a that `upper` names.
void triangular_solve(const RoutineCall& call) {
  require_matrices(call, 2, 1);
  const TensorView &a = call.inputs[0], &b = call.inputs[1], &x = call.outputs[0];
  const Matrices sizes = matrices_of(a), right = matrices_of(b);
  require_fit(sizes.rows == sizes.columns && has_shape(b, batch_of(a), {sizes.rows, right.columns}) &&
                  x.shape == b.shape && b.dtype == a.dtype && x.dtype == a.dtype,
              "triangular_solve");
  const auto upper = attribute<bool>(call, "upper"), unit = attribute<bool>(call, "unit");
  for_each_matrix(call, sizes.count, sizes.rows * (sizes.rows + right.columns), [&](int64_t i) {
    const Matrix triangle = read_matrix(a, i);
    Matrix work = read_matrix(b, i);
    if (upper && unit) triangle.triangularView<Eigen::UnitUpper>().solveInPlace(work);
    if (upper && !unit) triangle.triangularView<Eigen::Upper>().solveInPlace(work);
    if (!upper && unit) triangle.triangularView<Eigen::UnitLower>().solveInPlace(work);
    if (!upper && !unit) triangle.triangularView<Eigen::Lower>().solveInPlace(work);
    write_matrix(x, i, work);
  });
}

}  // namespace ingot::core::routines
