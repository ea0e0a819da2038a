// SPDX-License-Identifier: Apache-2.0
// Orthogonal factorizations, eigenvalues and singular values.
#include <algorithm>
#include <limits>

#include <unsupported/Eigen/MatrixFunctions>

#include "routines/matrices.h"

namespace ingot::core::routines {
namespace {

constexpr double kNotFound = std::numeric_limits<double>::quiet_NaN();

bool is_same_batch(const TensorView& a, size_t a_dims, const TensorView& b, size_t b_dims) {
  return std::ranges::equal(std::span(a.shape).first(a.shape.size() - a_dims),
                            std::span(b.shape).first(b.shape.size() - b_dims));
}
bool is_vector_of(const TensorView& vector, const TensorView& matrices, int64_t size) {
  return vector.dtype == matrices.dtype && vector.shape.size() + 1 == matrices.shape.size() &&
         vector.shape.back() == size && is_same_batch(matrices, 2, vector, 1);
}
bool is_batch_of(const TensorView& other, const TensorView& matrices, int64_t rows, int64_t columns) {
  const Matrices sizes = matrices_of(other);
  return other.dtype == matrices.dtype && other.shape.size() == matrices.shape.size() && sizes.rows == rows &&
         sizes.columns == columns && is_same_batch(matrices, 2, other, 2);
}

struct Singular {
  Matrix u, v;
  Eigen::VectorXd values;
};
enum class Vectors : uint8_t { kNone, kFew, kAll };  // kFew: as many as there are values

// NaN where the matrix is not finite, or nothing was found.
Singular singular_of(const Matrix& x, Vectors wanted) {
  const Eigen::Index count = std::min(x.rows(), x.cols());
  const bool all = wanted == Vectors::kAll;
  const Eigen::Index left = all ? x.rows() : count, right = all ? x.cols() : count;
  if (count == 0) return {Matrix::Identity(x.rows(), left), Matrix::Identity(x.cols(), right), {}};
  if (x.allFinite()) {
    constexpr unsigned kThin = Eigen::ComputeThinU | Eigen::ComputeThinV;
    constexpr unsigned kFull = Eigen::ComputeFullU | Eigen::ComputeFullV;
    const Eigen::BDCSVD<Matrix> found(x, wanted == Vectors::kNone ? 0U : all ? kFull : kThin);
    if (found.info() == Eigen::Success) {
      if (wanted == Vectors::kNone) return {{}, {}, found.singularValues()};
      return {found.matrixU(), found.matrixV(), found.singularValues()};
    }
  }
  return {Matrix::Constant(x.rows(), left, kNotFound), Matrix::Constant(x.cols(), right, kNotFound),
          Eigen::VectorXd::Constant(count, kNotFound)};
}

}  // namespace

// The reflections below the diagonal and R above it, and their factors: what LAPACK's geqrf returns.
void householder_qr(const RoutineCall& call) {
  require_matrices(call, 1, 2);
  const TensorView &x = call.inputs[0], &factor = call.outputs[0], &scales = call.outputs[1];
  const Matrices sizes = matrices_of(x);
  require_fit(factor.shape == x.shape && factor.dtype == x.dtype &&
                  is_vector_of(scales, x, std::min(sizes.rows, sizes.columns)),
              "householder_qr");
  if (sizes.rows == 0 || sizes.columns == 0) return;
  for_each_matrix(call, sizes.count, sizes.rows * sizes.columns, [&](int64_t i) {
    const Eigen::HouseholderQR<Matrix> found(read_matrix(x, i));
    write_matrix(factor, i, found.matrixQR());
    write_vector(scales, i, found.hCoeffs());
  });
}

// The first columns, as many as x has, of the product of the reflections.
void householder_product(const RoutineCall& call) {
  require_matrices(call, 2, 1);
  const TensorView &x = call.inputs[0], &scales = call.inputs[1], &q = call.outputs[0];
  const Matrices sizes = matrices_of(x);
  require_fit(!scales.shape.empty(), "householder_product");
  const int64_t count = scales.shape.back();
  require_fit(q.shape == x.shape && q.dtype == x.dtype && is_vector_of(scales, x, count) &&
                  count <= sizes.columns && sizes.columns <= sizes.rows,
              "householder_product");
  for_each_matrix(call, sizes.count, sizes.rows * sizes.columns, [&](int64_t i) {
    const Matrix vectors = read_matrix(x, i);
    const Eigen::VectorXd factors = read_vector(scales, i);
    Matrix product = Matrix::Identity(sizes.rows, sizes.columns);
    for (int64_t k = count; k-- > 0;) {
      const int64_t below = sizes.rows - k;
      Eigen::VectorXd reflection = vectors.col(k).tail(below);
      reflection(0) = 1;
      auto changed = product.bottomRows(below);
      const Eigen::RowVectorXd along = reflection.transpose() * changed;
      changed.noalias() -= factors(k) * reflection * along;
    }
    write_matrix(q, i, product);
  });
}

// Without a second output, only the values are computed.
void symmetric_eigen(const RoutineCall& call) {
  const bool has_vectors = call.outputs.size() == 2;
  require_matrices(call, 1, has_vectors ? 2 : 1);
  const TensorView &x = call.inputs[0], &values = call.outputs[0];
  const Matrices sizes = matrices_of(x);
  require_fit(sizes.rows == sizes.columns && is_vector_of(values, x, sizes.rows) &&
                  (!has_vectors || is_batch_of(call.outputs[1], x, sizes.rows, sizes.rows)),
              "symmetric_eigen");
  const auto upper = attribute<bool>(call, "upper");
  if (sizes.rows == 0) return;
  for_each_matrix(call, sizes.count, sizes.rows * sizes.rows, [&](int64_t i) {
    Matrix lower = read_matrix(x, i);
    if (upper) lower.transposeInPlace();
    const Eigen::SelfAdjointEigenSolver<Matrix> found(
        lower, has_vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
    const bool is_found = found.info() == Eigen::Success;
    write_vector(values, i,
                 is_found ? found.eigenvalues() : Eigen::VectorXd::Constant(sizes.rows, kNotFound).eval());
    if (!has_vectors) return;
    write_matrix(
        call.outputs[1], i,
        is_found ? found.eigenvectors() : Matrix::Constant(sizes.rows, sizes.rows, kNotFound).eval());
  });
}

// The outputs are u, the values and v^T, or the values alone.
void singular_values(const RoutineCall& call) {
  const bool has_vectors = call.outputs.size() == 3;
  require_matrices(call, 1, has_vectors ? 3 : 1);
  const TensorView &x = call.inputs[0], &values = call.outputs[has_vectors ? 1 : 0];
  const Matrices sizes = matrices_of(x);
  const auto full = attribute<bool>(call, "full");
  const int64_t count = std::min(sizes.rows, sizes.columns);
  require_fit(
      is_vector_of(values, x, count) &&
          (!has_vectors || (is_batch_of(call.outputs[0], x, sizes.rows, full ? sizes.rows : count) &&
                            is_batch_of(call.outputs[2], x, full ? sizes.columns : count, sizes.columns))),
      "singular_values");
  const Vectors wanted = !has_vectors ? Vectors::kNone : full ? Vectors::kAll : Vectors::kFew;
  for_each_matrix(call, sizes.count, sizes.rows * sizes.columns, [&](int64_t i) {
    const Singular found = singular_of(read_matrix(x, i), wanted);
    if (count > 0) write_vector(values, i, found.values);
    if (!has_vectors) return;
    write_matrix(call.outputs[0], i, found.u);
    write_matrix(call.outputs[2], i, found.v.transpose());
  });
}

void matrix_exponential(const RoutineCall& call) {
  require_matrices(call, 1, 1);
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const Matrices sizes = matrices_of(x);
  require_fit(sizes.rows == sizes.columns && y.shape == x.shape && y.dtype == x.dtype, "matrix_exponential");
  if (sizes.rows == 0) return;
  for_each_matrix(call, sizes.count, sizes.rows * sizes.rows, [&](int64_t i) {
    const Matrix work = read_matrix(x, i);
    const Matrix result =
        work.allFinite() ? work.exp().eval() : Matrix::Constant(sizes.rows, sizes.rows, kNotFound).eval();
    write_matrix(y, i, result);
  });
}

}  // namespace ingot::core::routines
