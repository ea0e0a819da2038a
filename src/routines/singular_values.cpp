// SPDX-License-Identifier: Apache-2.0
// Singular values of real and complex matrices, and their vectors.
#include <algorithm>
#include <limits>

#include "routines/matrices.h"

namespace ingot::core::routines {
namespace {

template <typename Given>
struct Singular {
  Given u, v;
  Eigen::VectorXd values;
};
enum class Vectors : uint8_t { kNone, kFew, kAll };  // kFew: as many as there are values

// NaN where the matrix is not finite, or nothing was found.
template <typename Given>
Singular<Given> singular_of(const Given& x, Vectors wanted) {
  constexpr double kNotFound = std::numeric_limits<double>::quiet_NaN();
  const Eigen::Index count = std::min(x.rows(), x.cols());
  const bool all = wanted == Vectors::kAll;
  const Eigen::Index left = all ? x.rows() : count, right = all ? x.cols() : count;
  if (count == 0) return {Given::Identity(x.rows(), left), Given::Identity(x.cols(), right), {}};
  if (x.allFinite()) {
    constexpr unsigned kThin = Eigen::ComputeThinU | Eigen::ComputeThinV;
    constexpr unsigned kFull = Eigen::ComputeFullU | Eigen::ComputeFullV;
    const Eigen::BDCSVD<Given> found(x, wanted == Vectors::kNone ? 0U : all ? kFull : kThin);
    if (found.info() == Eigen::Success) {
      if (wanted == Vectors::kNone) return {{}, {}, found.singularValues()};
      return {found.matrixU(), found.matrixV(), found.singularValues()};
    }
  }
  return {Given::Constant(x.rows(), left, kNotFound), Given::Constant(x.cols(), right, kNotFound),
          Eigen::VectorXd::Constant(count, kNotFound)};
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

void singular_values(const RoutineCall& call) { run_singular_values<Matrix>(call); }
void complex_singular_values(const RoutineCall& call) { run_singular_values<ComplexMatrix>(call); }

}  // namespace ingot::core::routines
