// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of matrices that need not be symmetric.
#include <limits>

#include <Eigen/Eigenvalues>

#include "routines/matrices.h"

namespace ingot::core::routines {
namespace {

using ComplexMatrix = Eigen::MatrixXcd;

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

bool has_shape_of(const TensorView& view, const TensorView& x, size_t dims) {
  return view.dtype == x.dtype && std::ranges::equal(view.shape, std::span(x.shape).first(dims));
}

// `find`: of matrix `index`.
template <typename Find>
void run(const RoutineCall& call, size_t inputs, std::string_view name, const Find& find) {
  const auto has_vectors = attribute<bool>(call, "vectors");
  require_matrices(call, inputs, has_vectors ? 4 : 2);
  const TensorView& x = call.inputs[0];
  const Matrices sizes = matrices_of(x);
  const size_t rank = x.shape.size();
  bool fits = sizes.rows == sizes.columns;
  for (const TensorView& input : call.inputs) fits = fits && has_shape_of(input, x, rank);
  for (size_t i = 0; i < call.outputs.size(); ++i)
    fits = fits && has_shape_of(call.outputs[i], x, i < 2 ? rank - 1 : rank);
  require_fit(fits, name);
  if (sizes.rows == 0) return;
  for_each_matrix(call, sizes.count, sizes.rows * sizes.rows, [&](int64_t i) {
    Found found = find(i, has_vectors);
    write_vector(call.outputs[0], i, found.values.real());
    write_vector(call.outputs[1], i, found.values.imag());
    if (!has_vectors) return;
    normalize(found.vectors);
    write_matrix(call.outputs[2], i, found.vectors.real());
    write_matrix(call.outputs[3], i, found.vectors.imag());
  });
}

}  // namespace

void eigen(const RoutineCall& call) {
  run(call, 1, "eigen", [&](int64_t i, bool has_vectors) {
    return found_by<Eigen::EigenSolver<Matrix>>(read_matrix(call.inputs[0], i), has_vectors);
  });
}

void complex_eigen(const RoutineCall& call) {
  run(call, 2, "complex_eigen", [&](int64_t i, bool has_vectors) {
    ComplexMatrix x(matrices_of(call.inputs[0]).rows, matrices_of(call.inputs[0]).columns);
    x.real() = read_matrix(call.inputs[0], i);
    x.imag() = read_matrix(call.inputs[1], i);
    return found_by<Eigen::ComplexEigenSolver<ComplexMatrix>>(x, has_vectors);
  });
}

}  // namespace ingot::core::routines
