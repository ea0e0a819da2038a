// SPDX-License-Identifier: Apache-2.0
// Factorizations of batches of matrices, which are the last two dims. `info` is 0, or counts from 1 where the
// matrix could not be factorized.
#include "ops/matrix_types.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kMatrixOperands[] = {{"x", DTypeSet::kFloating}};
constexpr Operand kReflectionOperands[] = {{"x", DTypeSet::kFloating}, {"scales", DTypeSet::kFloating}};
constexpr Operand kPivotOperands[] = {{"lu", DTypeSet::kFloating}, {"pivots", DTypeSet::kIndex}};
constexpr Operand kSolveOperands[] = {{"a", DTypeSet::kFloating}, {"b", DTypeSet::kFloating}};

Types infer_row_order(const Node& node) {
  const MatrixType lu(node);
  require(node.operand_type(1).dtype == DType::kI32, node, "the pivots must be i32");
  require_shape(node, 1, lu.with(DType::kI32, {lu.smaller()}).shape);
  return {lu.with(DType::kI64, {lu.rows})};
}

// Of one element each, so that they are positive.
Samples cholesky_samples() { return {sample({f32({batch(), 1, 1}, 1, 2)}, Cholesky{})}; }
Samples lu_factor_samples() { return {sample({f32({4, 4})}), sample({f32({batch(), 3, 5})})}; }
Samples row_order_samples() {
  return {sample({f32({3, 3}), tensor(DType::kI32, {3}, 3, 3)}),
          sample({f32({batch(), 4, 2}), tensor(DType::kI32, {batch(), 2}, 2, 4)})};
}
Samples triangular_solve_samples() {
  return {sample({f32({3, 3}, 1, 2), f32({3, 2})}, TriangularSolve{true, false}),
          sample({f32({batch(), 3, 3}, 1, 2), f32({batch(), 3, length()})}, TriangularSolve{false, true})};
}
Samples householder_qr_samples() { return {sample({f32({4, 3})}), sample({f32({batch(), 2, 3})})}; }
Samples householder_product_samples() { return {sample({f32({batch(), 4, 3}), f32({batch(), 2}, 0, 1)})}; }
// Vectors of one element, so that their signs are known.
Samples symmetric_eigen_samples() {
  return {sample({f32({batch(), 1, 1})}, SymmetricEigen{true, true}),
          sample({f32({2, 3, 3})}, SymmetricEigen{false, false})};
}
// Of one element, and of values alone: the order of several is not defined.
Samples eigen_samples() {
  return {sample({f32({batch(), 1, 1})}, Eigen{true}), sample({f32({2, 1, 1})}, Eigen{false})};
}
Samples singular_values_samples() {
  return {sample({f32({batch(), 1, 1}, 1, 2)}, SingularValues{true, true}),
          sample({f32({2, 4, 3})}, SingularValues{false, false})};
}
Samples matrix_exponential_samples() {
  return {sample({f32({3, 3}, -1, 1)}), sample({f32({batch(), 2, 2}, -1, 1)})};
}

}  // namespace

constinit const Op cholesky = {.name = "cholesky",
                               .summary = "the triangular factor l of x = l l^T (u of u^T u), and info",
                               .operands = kMatrixOperands,
                               .attributes = attribute_schema<Cholesky>(),
                               .infer = infer_cholesky<Parts::kReal>,
                               .routine = "cholesky",
                               .samples = cholesky_samples};
constinit const Op lu_factor = {
    .name = "lu_factor",
    .summary = "l below the diagonal and u, with rows of x exchanged; the rows exchanged, from 1; and info",
    .operands = kMatrixOperands,
    .infer = infer_lu_factor<Parts::kReal>,
    .routine = "lu_factor",
    .samples = lu_factor_samples};
constinit const Op row_order = {.name = "row_order",
                                .summary = "the row of x that is in each row of its lu_factor",
                                .operands = kPivotOperands,
                                .infer = infer_row_order,
                                .routine = "row_order",
                                .samples = row_order_samples};
constinit const Op triangular_solve = {.name = "triangular_solve",
                                       .summary = "the x of a x = b, for one triangle of a",
                                       .operands = kSolveOperands,
                                       .attributes = attribute_schema<TriangularSolve>(),
                                       .infer = infer_triangular_solve<Parts::kReal>,
                                       .routine = "triangular_solve",
                                       .samples = triangular_solve_samples};
constinit const Op householder_qr = {
    .name = "householder_qr",
    .summary = "r, and below its diagonal the reflections whose product is q; and their scales",
    .operands = kMatrixOperands,
    .infer = infer_householder_qr<Parts::kReal>,
    .routine = "householder_qr",
    .samples = householder_qr_samples};
constinit const Op householder_product = {
    .name = "householder_product",
    .summary = "the first columns of the product of reflections, as many as x has",
    .operands = kReflectionOperands,
    .infer = infer_householder_product<Parts::kReal>,
    .routine = "householder_product",
    .samples = householder_product_samples};
constinit const Op symmetric_eigen = {
    .name = "symmetric_eigen",
    .summary = "the eigenvalues of symmetric matrices, ascending, and their vectors as columns",
    .operands = kMatrixOperands,
    .attributes = attribute_schema<SymmetricEigen>(),
    .infer = infer_symmetric_eigen<Parts::kReal>,
    .routine = "symmetric_eigen",
    .samples = symmetric_eigen_samples};
constinit const Op eigen = {
    .name = "eigen",
    .summary =
        "the eigenvalues of real matrices, and their vectors as columns: the real parts, the imaginary parts",
    .operands = kMatrixOperands,
    .attributes = attribute_schema<Eigen>(),
    .infer = infer_eigen<Parts::kReal>,
    .routine = "eigen",
    .samples = eigen_samples};
constinit const Op singular_values = {.name = "singular_values",
                                      .summary = "u, s and vh of x = u diag(s) vh; s is descending",
                                      .operands = kMatrixOperands,
                                      .attributes = attribute_schema<SingularValues>(),
                                      .infer = infer_singular_values<Parts::kReal>,
                                      .routine = "singular_values",
                                      .samples = singular_values_samples};
constinit const Op matrix_exponential = {.name = "matrix_exponential",
                                         .summary = "the sum over k of the powers of x over k!",
                                         .operands = kMatrixOperands,
                                         .infer = infer_matrix_exponential<Parts::kReal>,
                                         .routine = "matrix_exponential",
                                         .samples = matrix_exponential_samples};

}  // namespace ingot::core::ops
