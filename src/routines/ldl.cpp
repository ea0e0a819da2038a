// SPDX-License-Identifier: Apache-2.0
// Factorizations of symmetric and Hermitian matrices that need not be definite: l d l^T with diagonal blocks
// of one or two rows, chosen by the pivots of Bunch and Kaufman, in the format of LAPACK's sytrf and hetrf.
#include <algorithm>
#include <cmath>

#include "routines/matrices.h"

namespace ingot::core::routines {
namespace {

using Eigen::Index;

// The element that the transposed matrix has in the other triangle.
template <bool kHermitian, typename Scalar>
Scalar mirrored(const Scalar& x) {
  if constexpr (kHermitian) return Eigen::numext::conj(x);
  return x;
}
template <bool kHermitian, typename Expression>
auto mirrored_row(const Expression& column) {
  if constexpr (kHermitian) {
    return column.adjoint();
  } else {
    return column.transpose();
  }
}

// Factorizes the lower triangle of x in place, column by column.
template <typename Given, bool kHermitian>
class Factorization {
 public:
  using Scalar = typename Given::Scalar;

  Factorization(Given& x, int32_t* pivots) : x_(x), pivots_(pivots), size_(x.rows()) {}

  // The order, from 1, of the first block of d that is zero; 0 if there is none.
  int32_t run() {
    int32_t zero = 0;
    for (Index k = 0; k < size_;) {
      real_diagonal(k);
      const Pivot pivot = choose(k);
      if (pivot.is_zero) {
        if (zero == 0) zero = static_cast<int32_t>(k + 1);
        pivots_[k] = static_cast<int32_t>(k + 1);
        ++k;
        continue;
      }
      exchange(k, pivot);
      if (pivot.size == 1) {
        eliminate_one(k);
      } else {
        eliminate_two(k);
      }
      const auto named = static_cast<int32_t>(pivot.row + 1);
      std::fill_n(pivots_ + k, pivot.size, pivot.size == 1 ? named : -named);
      k += pivot.size;
    }
    return zero;
  }

 private:
  struct Pivot {
    Index row = 0;   // that is exchanged with the last row of the block
    Index size = 1;  // rows of the block
    bool is_zero = false;
  };
  struct Largest {
    Index row = 0;
    double value = 0;
  };

  void real_diagonal(Index i) {
    if constexpr (kHermitian) x_(i, i) = std::real(x_(i, i));
  }
  Largest largest_below(Index column, Index first) const {
    Largest found;
    for (Index i = first; i < size_; ++i)
      if (const double value = pivot_size(x_(i, column)); value > found.value) found = {i, value};
    return found;
  }
  // Of row i and its mirrored column, from column k on, without the diagonal.
  double largest_of_row(Index i, Index k) const {
    double found = largest_below(i, i + 1).value;
    for (Index j = k; j < i; ++j) found = std::max(found, pivot_size(x_(i, j)));
    return found;
  }
  double diagonal_size(Index i) const {
    return kHermitian ? std::abs(std::real(x_(i, i))) : pivot_size(x_(i, i));
  }
  Pivot choose(Index k) const {
    static const double kGrowth = (1 + std::sqrt(17.0)) / 8;  // bounds the growth of elements
    const double own = diagonal_size(k);
    const Largest column = largest_below(k, k + 1);
    if (std::max(own, column.value) == 0 || std::isnan(own)) return {k, 1, true};
    if (own >= kGrowth * column.value) return {k};
    const double row = largest_of_row(column.row, k);
    if (own >= kGrowth * column.value * (column.value / row)) return {k};
    if (diagonal_size(column.row) >= kGrowth * row) return {column.row};
    return {column.row, 2};
  }

  // Exchanges rows and columns of the trailing matrix; columns of l stay as they are.
  void exchange(Index k, const Pivot& pivot) {
    const Index from = k + pivot.size - 1, to = pivot.row;
    if (from != to) {
      const Index below = size_ - to - 1;
      x_.col(from).tail(below).swap(x_.col(to).tail(below));
      for (Index i = from + 1; i < to; ++i) {
        const Scalar left = x_(i, from);
        x_(i, from) = mirrored<kHermitian>(x_(to, i));
        x_(to, i) = mirrored<kHermitian>(left);
      }
      x_(to, from) = mirrored<kHermitian>(x_(to, from));
      std::swap(x_(from, from), x_(to, to));
      if (pivot.size == 2) std::swap(x_(from, k), x_(to, k));
    }
    real_diagonal(k);
    if (pivot.size == 2) real_diagonal(k + 1);
  }

  void eliminate_one(Index k) {
    const Index below = size_ - k - 1;
    const auto column = x_.col(k).tail(below).eval();
    x_.col(k).tail(below) /= x_(k, k);
    for (Index j = 0; j < below; ++j)
      x_.col(k + 1 + j).tail(below - j).noalias() -=
          x_.col(k).tail(below - j) * mirrored<kHermitian>(column(j));
  }
  // The columns of l are those of x times the inverse of the block, computed as multiples of its off-diagonal
  // element, the largest of it.
  void eliminate_two(Index k) {
    const Index below = size_ - k - 2;
    const Scalar off = x_(k + 1, k), across = mirrored<kHermitian>(off);
    const Scalar first = x_(k + 1, k + 1) / off, second = x_(k, k) / across;
    const Scalar scale = Scalar(1) / (first * second - Scalar(1));
    const auto columns = x_.block(k + 2, k, below, 2).eval();
    x_.col(k).tail(below) = (columns.col(0) * (first / across) - columns.col(1) / across) * scale;
    x_.col(k + 1).tail(below) = (columns.col(1) * (second / off) - columns.col(0) / off) * scale;
    for (Index j = 0; j < below; ++j)
      x_.col(k + 2 + j).tail(below - j).noalias() -=
          x_.block(k + 2 + j, k, below - j, 2) * mirrored_row<kHermitian>(columns.row(j));
  }

  Given& x_;
  int32_t* pivots_;
  Index size_;
};

// Whether they name rows, and negative ones come in pairs, since they are of blocks of two rows.
bool are_pivots(std::span<const int32_t> pivots) {
  const auto size = static_cast<int64_t>(pivots.size());
  bool is_inside = false;  // of a block of two rows
  for (const int64_t pivot : pivots) {
    if (pivot == 0 || std::abs(pivot) > size || (is_inside && pivot > 0)) return false;
    is_inside = pivot < 0 && !is_inside;
  }
  return !is_inside;
}

// Solves with a factorization: l, d, and the mirrored l.
template <typename Given, bool kHermitian>
class Solution {
 public:
  using Scalar = typename Given::Scalar;

  Solution(const Given& ld, const int32_t* pivots, Given& b)
      : ld_(ld), pivots_(pivots), b_(b), size_(ld.rows()) {}

  void run() {
    Index k = 0;
    while (k < size_) k += forward(k);
    while (k > 0) k -= backward(k - 1);
  }

 private:
  Index block(Index k) const { return pivots_[k] > 0 ? 1 : 2; }
  void exchange(Index row, Index k) {
    const Index other = std::abs(static_cast<int64_t>(pivots_[k])) - 1;
    if (other != row) b_.row(row).swap(b_.row(other));
  }
  // The rows of the block that begins at k.
  Index forward(Index k) {
    const Index count = block(k), below = size_ - k - count;
    exchange(k + count - 1, k);
    b_.bottomRows(below).noalias() -= ld_.block(k + count, k, below, count) * b_.middleRows(k, count);
    if (count == 1) {
      b_.row(k) /= kHermitian ? Scalar(std::real(ld_(k, k))) : ld_(k, k);
    } else {
      divide_by_two(k);
    }
    return count;
  }
  void divide_by_two(Index k) {
    const Scalar off = ld_(k + 1, k), across = mirrored<kHermitian>(off);
    const Scalar first = ld_(k, k) / across, second = ld_(k + 1, k + 1) / off;
    const Scalar scale = Scalar(1) / (first * second - Scalar(1));
    const auto upper = (b_.row(k) / across).eval(), lower = (b_.row(k + 1) / off).eval();
    b_.row(k) = (second * upper - lower) * scale;
    b_.row(k + 1) = (first * lower - upper) * scale;
  }
  // The rows of the block that ends at k.
  Index backward(Index k) {
    const Index count = block(k), first = k + 1 - count, below = size_ - k - 1;
    b_.middleRows(first, count).noalias() -=
        mirrored_row<kHermitian>(ld_.block(k + 1, first, below, count)) * b_.bottomRows(below);
    exchange(k, k);
    return count;
  }

  const Given& ld_;
  const int32_t* pivots_;
  Given& b_;
  Index size_;
};

template <typename Given, bool kHermitian>
void factor_all(const RoutineCall& call, const Matrices& sizes) {
  const TensorView &pivots = call.outputs[kParts<Given>], &info = call.outputs.back();
  for_each_matrix(call, sizes.count, sizes.rows * sizes.rows, [&](int64_t i) {
    Given work = read_matrix<Given>(call.inputs, i);
    work.template triangularView<Eigen::StrictlyUpper>().setZero();
    *integers_of(info, i) = Factorization<Given, kHermitian>(work, integers_of(pivots, i * sizes.rows)).run();
    write_matrix<Given>(call.outputs.first(kParts<Given>), i, work);
  });
}
template <typename Given>
Matrices checked_factor_sizes(const RoutineCall& call) {
  require_matrices(call, kParts<Given>, kParts<Given> + 2);
  const TensorView &x = call.inputs[0], &pivots = call.outputs[kParts<Given>], &info = call.outputs.back();
  const Matrices sizes = matrices_of(x);
  require_fit(are_batches_of(call.inputs, x, sizes.rows, sizes.rows) && sizes.rows == sizes.columns &&
                  are_batches_of(call.outputs.first(kParts<Given>), x, sizes.rows, sizes.rows) &&
                  pivots.dtype == DType::kI32 && has_batch_of(x, pivots, {sizes.rows}) &&
                  info.dtype == DType::kI32 && has_batch_of(x, info, {}),
              "ldl_factor");
  return sizes;
}

template <typename Given, bool kHermitian>
void solve_all(const RoutineCall& call) {
  require_matrices(call, 2 * kParts<Given> + 1, kParts<Given>);
  const Parts ld = call.inputs.first(kParts<Given>), b = call.inputs.subspan(kParts<Given>, kParts<Given>);
  const TensorView& pivots = call.inputs.back();
  const Matrices sizes = matrices_of(ld[0]), right = matrices_of(b[0]);
  require_fit(are_batches_of(ld, ld[0], sizes.rows, sizes.rows) && sizes.rows == sizes.columns &&
                  are_batches_of(b, ld[0], sizes.rows, right.columns) &&
                  are_batches_of(call.outputs, ld[0], sizes.rows, right.columns) &&
                  pivots.dtype == DType::kI32 && has_batch_of(ld[0], pivots, {sizes.rows}),
              "ldl_solve");
  for (int64_t i = 0; i < sizes.count; ++i)
    require_fit(are_pivots({integers_of(pivots, i * sizes.rows), static_cast<size_t>(sizes.rows)}),
                "ldl_solve");
  for_each_matrix(call, sizes.count, sizes.rows * (sizes.rows + right.columns), [&](int64_t i) {
    const Given factors = read_matrix<Given>(ld, i);
    Given work = read_matrix<Given>(b, i);
    Solution<Given, kHermitian>(factors, integers_of(pivots, i * sizes.rows), work).run();
    write_matrix<Given>(call.outputs, i, work);
  });
}

}  // namespace

void ldl_factor(const RoutineCall& call) {
  factor_all<Matrix, false>(call, checked_factor_sizes<Matrix>(call));
}
void complex_ldl_factor(const RoutineCall& call) {
  const Matrices sizes = checked_factor_sizes<ComplexMatrix>(call);
  if (attribute<bool>(call, "hermitian")) return factor_all<ComplexMatrix, true>(call, sizes);
  factor_all<ComplexMatrix, false>(call, sizes);
}
void ldl_solve(const RoutineCall& call) { solve_all<Matrix, false>(call); }
void complex_ldl_solve(const RoutineCall& call) {
  if (attribute<bool>(call, "hermitian")) return solve_all<ComplexMatrix, true>(call);
  solve_all<ComplexMatrix, false>(call);
}

}  // namespace ingot::core::routines
