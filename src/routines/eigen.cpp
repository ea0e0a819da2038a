// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of matrices that need not be symmetric.
#include <limits>

#include <Eigen/Eigenvalues>

#include "routines/matrices.h"

namespace ingot::core::routines {
namespace {

struct Found {
  Eigen::VectorXcd values;
  ComplexMatrix vectors;
};

Found not_found(Eigen::Index size) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {Eigen::VectorXcd::Constant(size, {nan, nan}), ComplexMatrix::Constant(size, size, {nan, nan})};
}

template <typename Solver, typename Given>
Found found_by(const Given& x, bool has_vectors) {
  if (!x.allFinite()) return not_found(x.rows());
  const Solver solver(x, has_vectors);
  if (solver.info() != Eigen::Success) return not_found(x.rows());
  return {solver.eigenvalues(), has_vectors ? ComplexMatrix(solver.eigenvectors()) : ComplexMatrix()};
}

// As LAPACK leaves them: of length 1, and the largest element is real.
void normalize(ComplexMatrix& vectors) {
  for (Eigen::Index column = 0; column < vectors.cols(); ++column) {
    auto vector = vectors.col(column);
    Eigen::Index largest = 0;
    vector.cwiseAbs2().maxCoeff(&largest);
    const std::complex<double> turn = vector(largest);
    if (turn.imag() != 0) {
      vector *= std::conj(turn) / std::abs(turn);
      vector(largest) = vector(largest).real();
    }
    const double length = vector.norm();
    if (length > 0) vector /= length;
  }
}

template <typename Solver, typename Given>
void run_eigen(const RoutineCall& call) {
  const auto has_vectors = attribute<bool>(call, "vectors");
  require_matrices(call, kParts<Given>, has_vectors ? 4 : 2);
  const TensorView& x = call.inputs[0];
  const Parts values = call.outputs.first(2), vectors = call.outputs.subspan(2);
  const Matrices sizes = matrices_of(x);
  require_fit(are_batches_of(call.inputs, x, sizes.rows, sizes.rows) && sizes.rows == sizes.columns &&
                  are_vectors_of(values, x, sizes.rows) && are_batches_of(vectors, x, sizes.rows, sizes.rows),
              "eigen");
  if (sizes.rows == 0) return;
  for_each_matrix(call, sizes.count, sizes.rows * sizes.rows, [&](int64_t i) {
    Found found = found_by<Solver>(read_matrix<Given>(call.inputs, i), has_vectors);
    write_vector<ComplexMatrix>(values, i, found.values);
    if (!has_vectors) return;
    normalize(found.vectors);
    write_matrix<ComplexMatrix>(vectors, i, found.vectors);
  });
}

}  // namespace

void eigen(const RoutineCall& call) { run_eigen<Eigen::EigenSolver<Matrix>, Matrix>(call); }
void complex_eigen(const RoutineCall& call) {
  run_eigen<Eigen::ComplexEigenSolver<ComplexMatrix>, ComplexMatrix>(call);
}

}  // namespace ingot::core::routines
