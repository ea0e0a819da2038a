// SPDX-License-Identifier: Apache-2.0
// The x of least |a x - b|, and of least |x| among these, by LAPACK's drivers: gels takes the rank for full,
// gelsy finds it by a factorization with pivots, gelsd and gelss by singular values.
#include <algorithm>
#include <cmath>
#include <limits>

#include "routines/matrices.h"
#include "routines/singular_values.h"

namespace ingot::core::routines {
namespace {

using Eigen::Index;

template <typename Given>
struct Solved {
  Given x;
  Index rank = 0;
  Eigen::VectorXd values;  // singular ones, of gelsd and gelss
};

template <typename Given>
Solved<Given> zero_solution(const Given& a, const Given& b) {
  return {Given::Zero(a.cols(), b.cols()), 0, Eigen::VectorXd::Zero(std::min(a.rows(), a.cols()))};
}

// The y of least |y| with r y = c, for an upper trapezoidal r of full rank: r^H = q s, so y = q s^-H c.
template <typename Given>
Given least_solution(const Given& r, const Given& c) {
  const Index rank = r.rows();
  const Eigen::HouseholderQR<Given> found(r.adjoint());
  Given y = Given::Zero(r.cols(), c.cols());
  y.topRows(rank) =
      found.matrixQR().topRows(rank).template triangularView<Eigen::Upper>().adjoint().solve(c.topRows(rank));
  y.applyOnTheLeft(found.householderQ());
  return y;
}

// How many elements of the diagonal precede the first zero.
template <typename Given>
Index nonzero_diagonal(const Given& r) {
  Index count = 0;
  while (count < std::min(r.rows(), r.cols()) && r(count, count) != typename Given::Scalar(0)) ++count;
  return count;
}

template <typename Given>
Solved<Given> solve_full_rank(const Given& a, const Given& b) {
  if (a.rows() < a.cols()) {
    const Eigen::HouseholderQR<Given> found(a.adjoint());
    Solved<Given> result{Given::Zero(a.cols(), b.cols()), nonzero_diagonal(found.matrixQR()), {}};
    const auto r = found.matrixQR().topRows(a.rows()).template triangularView<Eigen::Upper>();
    result.x.topRows(a.rows()) = r.adjoint().solve(b);
    result.x.applyOnTheLeft(found.householderQ());
    return result;
  }
  const Eigen::HouseholderQR<Given> found(a);
  Given c = b;
  c.applyOnTheLeft(found.householderQ().adjoint());
  const auto r = found.matrixQR().topRows(a.cols()).template triangularView<Eigen::Upper>();
  return {r.solve(c.topRows(a.cols())), nonzero_diagonal(found.matrixQR()), {}};
}

// An estimate of the largest or the smallest singular value of a triangle that grows by columns: the length
// of v^H r for a vector v that is kept close to the singular one.
template <typename Given>
class ValueEstimate {
 public:
  using Scalar = typename Given::Scalar;
  enum class Of : uint8_t { kLargest, kSmallest };

  ValueEstimate(Of wanted, const Scalar& first)
      : wanted_(wanted), value_(std::abs(first)), vector_(VectorOf<Given>::Ones(1)) {}
  double value() const { return value_; }
  // The estimate of the triangle with one column more: `column`, and `diagonal` below it. Its v is
  // [s v, c] for the s and c of the wanted length.
  ValueEstimate grown(const VectorOf<Given>& column, const Scalar& diagonal) const {
    Eigen::Matrix<Scalar, 2, 2> lengths;
    lengths << Scalar(value_), Scalar(0), vector_.dot(column), diagonal;
    const Eigen::JacobiSVD<Eigen::Matrix<Scalar, 2, 2>> found(lengths, Eigen::ComputeFullV);
    const Index which = wanted_ == Of::kLargest ? 0 : 1;
    const Scalar along = Eigen::numext::conj(found.matrixV()(0, which)),
                 across = Eigen::numext::conj(found.matrixV()(1, which));
    ValueEstimate result(wanted_, found.singularValues()(which));
    result.vector_.resize(vector_.size() + 1);
    result.vector_ << vector_ * along, across;
    return result;
  }

 private:
  Of wanted_;
  double value_;
  VectorOf<Given> vector_;
};

// The columns of a triangle up to the first that would make its estimated condition larger than 1 / rcond.
template <typename Given>
Index rank_of_triangle(const Given& r, double rcond) {
  using Estimate = ValueEstimate<Given>;
  const Index count = std::min(r.rows(), r.cols());
  if (count == 0 || std::abs(r(0, 0)) == 0) return 0;
  Estimate largest(Estimate::Of::kLargest, r(0, 0)), smallest(Estimate::Of::kSmallest, r(0, 0));
  for (Index rank = 1; rank < count; ++rank) {
    const VectorOf<Given> column = r.col(rank).head(rank);
    largest = largest.grown(column, r(rank, rank));
    smallest = smallest.grown(column, r(rank, rank));
    if (largest.value() * rcond > smallest.value()) return rank;
  }
  return count;
}

template <typename Given>
Solved<Given> solve_by_pivots(const Given& a, const Given& b, double rcond) {
  const Eigen::ColPivHouseholderQR<Given> found(a);
  const Index rank = rank_of_triangle<Given>(found.matrixQR(), rcond);
  if (rank == 0) return zero_solution(a, b);
  Given c = b;
  c.applyOnTheLeft(found.householderQ().setLength(std::min(a.rows(), a.cols())).adjoint());
  const Given r = found.matrixQR().topRows(rank).template triangularView<Eigen::Upper>();
  return {found.colsPermutation() * least_solution<Given>(r, c.topRows(rank)), rank, {}};
}

template <typename Given>
Solved<Given> solve_by_singular_values(const Given& a, const Given& b, double rcond) {
  const Singular<Given> found = singular_of(a, Vectors::kFew);
  const Eigen::VectorXd& values = found.values;
  const Index rank = (values.array() > rcond * values(0)).count();
  const auto along = (found.u.leftCols(rank).adjoint() * b).eval();
  return {found.v.leftCols(rank) * values.head(rank).cwiseInverse().asDiagonal() * along, rank, values};
}

struct Driver {
  enum class Kind : uint8_t { kFullRank, kPivots, kSingularValues } kind = Kind::kFullRank;
  double rcond = 0;
};
// LAPACK replaces an rcond that is not a ratio by a threshold of its own, which differs between drivers.
Driver driver_of(const RoutineCall& call, const Matrices& sizes) {
  const auto& name = attribute<std::string>(call, "driver");
  const bool is_double = call.inputs[0].dtype == DType::kF64;
  const double epsilon =
      is_double ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  double rcond = attribute<bool>(call, "has_rcond")
                     ? attribute<double>(call, "rcond")
                     : epsilon * static_cast<double>(std::max(sizes.rows, sizes.columns));
  if (name == "gels") return {Driver::Kind::kFullRank, 0};
  if (name == "gelsy") return {Driver::Kind::kPivots, rcond};
  const bool is_divided = name == "gelsd";
  if (!is_divided && name != "gelss") reject_attribute("driver", name);
  if (rcond < 0 || (is_divided && (rcond == 0 || rcond >= 1))) rcond = is_divided ? epsilon / 2 : epsilon;
  return {Driver::Kind::kSingularValues, rcond};
}

// NaN of rank 0 where the matrices are not finite.
template <typename Given>
Solved<Given> solve(const Given& a, const Given& b, const Driver& driver) {
  Solved<Given> none = zero_solution(a, b);
  if (a.size() == 0) return none;
  if (!a.allFinite() || !b.allFinite()) {
    constexpr double kNotFound = std::numeric_limits<double>::quiet_NaN();
    none.x.setConstant(kNotFound);
    none.values.setConstant(kNotFound);
    return none;
  }
  if (driver.kind == Driver::Kind::kFullRank) return solve_full_rank(a, b);
  if (driver.kind == Driver::Kind::kPivots) return solve_by_pivots(a, b, driver.rcond);
  return solve_by_singular_values(a, b, driver.rcond);
}

// Zero where the columns of a span all of its rows: what a x - b has there is rounding errors alone.
template <typename Given>
Eigen::VectorXd residuals_of(const Given& a, const Given& b, const Solved<Given>& found) {
  if (found.rank == a.rows()) return Eigen::VectorXd::Zero(b.cols());
  return (a * found.x - b).colwise().squaredNorm();
}

// The outputs are x, the squared lengths of the columns of a x - b, the rank, and the singular values that
// gelsd and gelss find.
template <typename Given>
void run_least_squares(const RoutineCall& call) {
  constexpr size_t kX = kParts<Given>;
  const bool has_values = call.outputs.size() > kX + 2;
  require_matrices(call, 2 * kX, has_values ? kX + 3 : kX + 2);
  const Parts a = call.inputs.first(kX), b = call.inputs.last(kX), x = call.outputs.first(kX),
              values = call.outputs.subspan(kX + 2);
  const TensorView &residuals = call.outputs[kX], &rank = call.outputs[kX + 1];
  const Matrices sizes = matrices_of(a[0]), right = matrices_of(b[0]);
  const int64_t count = std::min(sizes.rows, sizes.columns);
  require_fit(are_batches_of(a, a[0], sizes.rows, sizes.columns) &&
                  are_batches_of(b, a[0], sizes.rows, right.columns) &&
                  are_batches_of(x, a[0], sizes.columns, right.columns) &&
                  are_vectors_of({&residuals, 1}, a[0], right.columns) && rank.dtype == DType::kI32 &&
                  has_batch_of(a[0], rank, {}) && are_vectors_of(values, a[0], count),
              "least_squares");
  const Driver driver = driver_of(call, sizes);
  require_fit(!has_values || driver.kind == Driver::Kind::kSingularValues, "least_squares");
  for_each_matrix(call, sizes.count, sizes.rows * (sizes.columns + right.columns), [&](int64_t i) {
    const auto given = read_matrix<Given>(a, i), wanted = read_matrix<Given>(b, i);
    const Solved<Given> found = solve<Given>(given, wanted, driver);
    write_matrix<Given>(x, i, found.x);
    write_reals(residuals, i, residuals_of<Given>(given, wanted, found));
    *integers_of(rank, i) = static_cast<int32_t>(found.rank);
    if (has_values) write_reals(values[0], i, found.values);
  });
}

}  // namespace

void least_squares(const RoutineCall& call) { run_least_squares<Matrix>(call); }
void complex_least_squares(const RoutineCall& call) { run_least_squares<ComplexMatrix>(call); }

}  // namespace ingot::core::routines
