// SPDX-License-Identifier: Apache-2.0
// Orthogonal factorizations.
#include <algorithm>

#include "routines/matrices.h"
#include "routines/reflections.h"

namespace ingot::core::routines {
namespace {

// The reflections below the diagonal and R above it, and their factors: what LAPACK's geqrf returns.
template <typename Given>
void run_householder_qr(const RoutineCall& call) {
  require_matrices(call, kParts<Given>, 2 * kParts<Given>);
  const TensorView& x = call.inputs[0];
  const Parts factor = call.outputs.first(kParts<Given>), scales = call.outputs.last(kParts<Given>);
  const Matrices sizes = matrices_of(x);
  require_fit(are_batches_of(call.inputs, x, sizes.rows, sizes.columns) &&
                  are_batches_of(factor, x, sizes.rows, sizes.columns) &&
                  are_vectors_of(scales, x, std::min(sizes.rows, sizes.columns)),
              "householder_qr");
  if (sizes.rows == 0 || sizes.columns == 0) return;
  for_each_matrix(call, sizes.count, sizes.rows * sizes.columns, [&](int64_t i) {
    Given work = read_matrix<Given>(call.inputs, i);
    VectorOf<Given> factors(std::min(sizes.rows, sizes.columns));
    factor_qr<Given>(work, factors);
    write_matrix<Given>(factor, i, work);
    write_vector<Given>(scales, i, factors);
  });
}

// The first columns, as many as x has, of the product of the reflections.
template <typename Given>
void run_householder_product(const RoutineCall& call) {
  require_matrices(call, 2 * kParts<Given>, kParts<Given>);
  const TensorView& x = call.inputs[0];
  const Parts matrices = call.inputs.first(kParts<Given>), scales = call.inputs.last(kParts<Given>);
  const Matrices sizes = matrices_of(x);
  require_fit(!scales[0].shape.empty(), "householder_product");
  const int64_t count = scales[0].shape.back();
  require_fit(are_batches_of(matrices, x, sizes.rows, sizes.columns) &&
                  are_batches_of(call.outputs, x, sizes.rows, sizes.columns) &&
                  are_vectors_of(scales, x, count) && count <= sizes.columns && sizes.columns <= sizes.rows,
              "householder_product");
  for_each_matrix(call, sizes.count, sizes.rows * sizes.columns, [&](int64_t i) {
    const Given vectors = read_matrix<Given>(matrices, i);
    const VectorOf<Given> factors = read_vector<Given>(scales, i);
    write_matrix<Given>(call.outputs, i, product_of_reflections<Given>(vectors, factors));
  });
}

}  // namespace

void householder_qr(const RoutineCall& call) { run_householder_qr<Matrix>(call); }
void complex_householder_qr(const RoutineCall& call) { run_householder_qr<ComplexMatrix>(call); }
void householder_product(const RoutineCall& call) { run_householder_product<Matrix>(call); }
void complex_householder_product(const RoutineCall& call) { run_householder_product<ComplexMatrix>(call); }

}  // namespace ingot::core::routines
