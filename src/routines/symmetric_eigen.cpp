// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of symmetric and Hermitian matrices.
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include <Eigen/Eigenvalues>

#include "routines/matrices.h"
#include "routines/qr_iterations.h"
#include "routines/reflections.h"
#include "routines/rotated_matrix.h"

namespace ingot::core::routines {
namespace {

using Eigen::Index;

// A matrix becomes the unitary one that makes it tridiagonal, if that is wanted.
CondensedForm reduce(Matrix& lower, bool has_vectors) {
  KeptReflections kept;
  const CondensedForm form = tridiagonal_of(lower, has_vectors ? &kept : nullptr);
  if (has_vectors) {
    const Index others = lower.rows() - 1;
    lower.setIdentity();
    lower.bottomRightCorner(others, others) = product_of_reflections<Matrix>(kept.vectors, kept.scales);
  }
  return form;
}
CondensedForm reduce(ComplexMatrix& lower, bool has_vectors) {
  const Index others = lower.rows() - 1;
  CondensedForm form{Eigen::VectorXd(lower.rows()), Eigen::VectorXd(others)};
  Eigen::VectorXcd scales(others);
  Eigen::internal::tridiagonalization_inplace(lower, form.diagonal, form.beside, scales, has_vectors);
  return form;
}

template <typename Given>
struct SymmetricEigen {
  Eigen::VectorXd values;
  Given vectors;
};

template <typename Given>
SymmetricEigen<Given> no_eigenvalues(Index size) {
  constexpr double kNotFound = std::numeric_limits<double>::quiet_NaN();
  return {Eigen::VectorXd::Constant(size, kNotFound), Given::Constant(size, size, kNotFound)};
}

// Ascending values, and their vectors if they are wanted.
template <typename Given>
SymmetricEigen<Given> eigen_of(Given lower, bool has_vectors) {
  const Index size = lower.rows();
  lower.template triangularView<Eigen::StrictlyUpper>().setZero();
  if (!lower.allFinite()) return no_eigenvalues<Given>(size);
  if (size == 1) return {lower.real(), Given::Ones(1, 1)};
  const double largest = lower.cwiseAbs().maxCoeff(), scale = largest == 0 ? 1 : largest;
  lower = (lower / scale).eval();  // complex numbers divided by a real one: no squares overflow
  CondensedForm form = reduce(lower, has_vectors);
  std::optional<RotatedMatrix<Given>> vectors;
  if (has_vectors) vectors.emplace(lower);
  if (!find_eigenvalues(form, has_vectors ? &vectors->rotations() : nullptr))
    return no_eigenvalues<Given>(size);
  std::vector<Index> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, std::less(), [&](Index i) { return form.diagonal(i); });
  SymmetricEigen<Given> found{Eigen::VectorXd(size), has_vectors ? vectors->columns(order) : Given()};
  for (Index i = 0; i < size; ++i) found.values(i) = form.diagonal(order[static_cast<size_t>(i)]) * scale;
  return found;
}

// Without outputs after the first, only the values are computed.
template <typename Given>
void run_symmetric_eigen(const RoutineCall& call) {
  const bool has_vectors = call.outputs.size() > 1;
  require_matrices(call, kParts<Given>, has_vectors ? kParts<Given> + 1 : 1);
  const TensorView &x = call.inputs[0], &values = call.outputs[0];
  const Parts vectors = call.outputs.subspan(1);
  const Matrices sizes = matrices_of(x);
  require_fit(are_batches_of(call.inputs, x, sizes.rows, sizes.rows) && sizes.rows == sizes.columns &&
                  are_vectors_of({&values, 1}, x, sizes.rows) &&
                  are_batches_of(vectors, x, sizes.rows, sizes.rows),
              "symmetric_eigen");
  const auto upper = attribute<bool>(call, "upper");
  if (sizes.rows == 0) return;
  for_each_matrix(call, sizes.count, sizes.rows * sizes.rows, [&](int64_t i) {
    Given lower = read_matrix<Given>(call.inputs, i);
    if (upper) lower.adjointInPlace();
    const auto found = eigen_of<Given>(std::move(lower), has_vectors);
    write_reals(values, i, found.values);
    if (has_vectors) write_matrix<Given>(vectors, i, found.vectors);
  });
}

}  // namespace

void symmetric_eigen(const RoutineCall& call) { run_symmetric_eigen<Matrix>(call); }
void hermitian_eigen(const RoutineCall& call) { run_symmetric_eigen<ComplexMatrix>(call); }

}  // namespace ingot::core::routines
