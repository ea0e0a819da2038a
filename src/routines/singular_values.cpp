// SPDX-License-Identifier: Apache-2.0
// Singular values of real and complex matrices, and their vectors.
#include "routines/singular_values.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include <Eigen/SVD>

#include "routines/qr_iterations.h"
#include "routines/reflections.h"
#include "routines/rotated_matrix.h"

namespace ingot::core::routines {
namespace {

using Eigen::Index;

// Unitary matrices that make a matrix bidiagonal, if they are wanted: `left` columns of the first one.
template <typename Given>
struct Bidiagonal {
  CondensedForm form;
  Given u, v;
};

Bidiagonal<Matrix> reduced_of(const Matrix& x, bool has_vectors, Index left) {
  if (!has_vectors) return {bidiagonal_of(x, nullptr, nullptr), {}, {}};
  KeptReflections u, v;
  Bidiagonal<Matrix> result{bidiagonal_of(x, &u, &v), {}, Matrix::Identity(x.cols(), x.cols())};
  u.vectors.conservativeResizeLike(Matrix::Zero(x.rows(), left));
  result.u = product_of_reflections<Matrix>(u.vectors, u.scales);
  const Index others = x.cols() - 1;
  result.v.bottomRightCorner(others, others) = product_of_reflections<Matrix>(v.vectors, v.scales);
  return result;
}
Bidiagonal<ComplexMatrix> reduced_of(const ComplexMatrix& x, bool has_vectors, Index left) {
  Eigen::internal::UpperBidiagonalization<ComplexMatrix> found(x);
  auto form = found.bidiagonal();
  Bidiagonal<ComplexMatrix> result{{form.diagonal(), form.diagonal<1>()}, {}, {}};
  if (!has_vectors) return result;
  result.u = ComplexMatrix::Identity(x.rows(), left);
  result.v = ComplexMatrix::Identity(x.cols(), x.cols());
  result.u.applyOnTheLeft(found.householderU());
  result.v.applyOnTheLeft(found.householderV());
  return result;
}

template <typename Given>
Singular<Given> no_values(const Given& x, Vectors wanted) {
  constexpr double kNotFound = std::numeric_limits<double>::quiet_NaN();
  const Index count = std::min(x.rows(), x.cols());
  const bool all = wanted == Vectors::kAll;
  return {Given::Constant(x.rows(), all ? x.rows() : count, kNotFound),
          Given::Constant(x.cols(), all ? x.cols() : count, kNotFound),
          Eigen::VectorXd::Constant(count, kNotFound)};
}

// x has no more columns than rows.
template <typename Given>
Singular<Given> singular_of_tall(const Given& x, Vectors wanted) {
  const bool has_vectors = wanted != Vectors::kNone;
  const double largest = x.cwiseAbs().maxCoeff(), scale = largest == 0 ? 1 : largest;
  auto [form, u, v] =
      reduced_of(Given(x / scale), has_vectors, wanted == Vectors::kAll ? x.rows() : x.cols());
  std::optional<RotatedMatrix<Given>> left, right;
  if (has_vectors) {
    left.emplace(u);
    right.emplace(v);
  }
  if (!find_singular_values(form, has_vectors ? &left->rotations() : nullptr,
                            has_vectors ? &right->rotations() : nullptr))
    return no_values(x, wanted);
  std::vector<Index> order(static_cast<size_t>(has_vectors ? u.cols() : x.cols()));
  std::iota(order.begin(), order.end(), 0);
  const auto values = std::span(order).first(static_cast<size_t>(x.cols()));
  std::ranges::sort(values, std::greater(), [&](Index i) { return std::abs(form.diagonal(i)); });
  Singular<Given> result{{}, {}, Eigen::VectorXd(x.cols())};
  for (Index i = 0; i < x.cols(); ++i)
    result.values(i) = std::abs(form.diagonal(order[static_cast<size_t>(i)])) * scale;
  if (!has_vectors) return result;
  result.u = left->columns(order);
  result.v = right->columns(values);
  for (Index i = 0; i < x.cols(); ++i) {
    if (std::signbit(form.diagonal(order[static_cast<size_t>(i)]))) result.v.col(i) *= -1;
  }
  return result;
}

// The outputs are u, the values and v^H, or the values alone.
template <typename Given>
void run_singular_values(const RoutineCall& call) {
  const bool has_vectors = call.outputs.size() > 1;
  require_matrices(call, kParts<Given>, has_vectors ? 2 * kParts<Given> + 1 : 1);
  const TensorView &x = call.inputs[0], &values = call.outputs[has_vectors ? kParts<Given> : 0];
  const Parts u = call.outputs.first(has_vectors ? kParts<Given> : 0), vh = call.outputs.last(u.size());
  const Matrices sizes = matrices_of(x);
  const auto full = attribute<bool>(call, "full");
  const int64_t count = std::min(sizes.rows, sizes.columns);
  require_fit(are_batches_of(call.inputs, x, sizes.rows, sizes.columns) &&
                  are_vectors_of({&values, 1}, x, count) &&
                  are_batches_of(u, x, sizes.rows, full ? sizes.rows : count) &&
                  are_batches_of(vh, x, full ? sizes.columns : count, sizes.columns),
              "singular_values");
  const Vectors wanted = !has_vectors ? Vectors::kNone : full ? Vectors::kAll : Vectors::kFew;
  for_each_matrix(call, sizes.count, sizes.rows * sizes.columns, [&](int64_t i) {
    const auto found = singular_of(read_matrix<Given>(call.inputs, i), wanted);
    if (count > 0) write_reals(values, i, found.values);
    if (!has_vectors) return;
    write_matrix<Given>(u, i, found.u);
    write_matrix<Given>(vh, i, found.v.adjoint());
  });
}

}  // namespace

template <typename Given>
Singular<Given> singular_of(const Given& x, Vectors wanted) {
  const Index count = std::min(x.rows(), x.cols());
  const bool all = wanted == Vectors::kAll;
  if (count == 0) {
    return {Given::Identity(x.rows(), all ? x.rows() : 0), Given::Identity(x.cols(), all ? x.cols() : 0), {}};
  }
  if (!x.allFinite()) return no_values(x, wanted);
  if (x.rows() >= x.cols()) return singular_of_tall(x, wanted);
  Singular<Given> result = singular_of_tall(Given(x.adjoint()), wanted);
  result.u.swap(result.v);
  return result;
}
template Singular<Matrix> singular_of(const Matrix&, Vectors);
template Singular<ComplexMatrix> singular_of(const ComplexMatrix&, Vectors);

void singular_values(const RoutineCall& call) { run_singular_values<Matrix>(call); }
void complex_singular_values(const RoutineCall& call) { run_singular_values<ComplexMatrix>(call); }

}  // namespace ingot::core::routines
