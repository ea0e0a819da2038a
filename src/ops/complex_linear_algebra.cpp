// SPDX-License-Identifier: Apache-2.0
// The operators of linear_algebra.cpp for complex matrices, whose parts are two operands.
#include "ops/matrix_types.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kMatrixParts[] = {{"re", DTypeSet::kFloating}, {"im", DTypeSet::kFloating}};
constexpr Operand kSolveParts[] = {{"a_re", DTypeSet::kFloating},
                                   {"a_im", DTypeSet::kFloating},
                                   {"b_re", DTypeSet::kFloating},
                                   {"b_im", DTypeSet::kFloating}};
constexpr Operand kReflectionParts[] = {{"re", DTypeSet::kFloating},
                                        {"im", DTypeSet::kFloating},
                                        {"scales_re", DTypeSet::kFloating},
                                        {"scales_im", DTypeSet::kFloating}};

std::vector<SampleOperand> parts(const Shape& shape) { return {f32(shape), f32(shape)}; }
std::vector<SampleOperand> parts(const Shape& first, const Shape& second) {
  return {f32(first, 1, 2), f32(first), f32(second), f32(second)};
}

// Of one element each, so that the real parts are positive.
Samples complex_cholesky_samples() {
  return {sample({f32({batch(), 1, 1}, 1, 2), f32({batch(), 1, 1})}, Cholesky{})};
}
Samples complex_lu_factor_samples() { return {sample(parts({4, 4})), sample(parts({batch(), 3, 5}))}; }
Samples complex_triangular_solve_samples() {
  return {sample(parts({3, 3}, {3, 2}), TriangularSolve{true, false}),
          sample(parts({batch(), 3, 3}, {batch(), 3, length()}), TriangularSolve{false, true})};
}
// Wide ones of one row: the last of several is turned by what is left of it, most of which may cancel.
Samples complex_householder_qr_samples() { return {sample(parts({4, 3})), sample(parts({batch(), 1, 3}))}; }
Samples complex_householder_product_samples() { return {sample(parts({batch(), 4, 3}, {batch(), 2}))}; }
// Values alone of more than one element: vectors of one value may be turned in the complex plane.
Samples hermitian_eigen_samples() {
  return {sample(parts({batch(), 1, 1}), SymmetricEigen{true, true}),
          sample(parts({2, 3, 3}), SymmetricEigen{false, false})};
}
// Of one element, and of values alone: the order of several is not defined.
Samples complex_eigen_samples() {
  return {sample(parts({batch(), 1, 1}), Eigen{true}), sample(parts({2, 1, 1}), Eigen{false})};
}
Samples complex_singular_values_samples() {
  return {sample(parts({batch(), 2, 3}), SingularValues{false, false})};
}
Samples complex_matrix_exponential_samples() {
  return {sample(parts({3, 3})), sample(parts({batch(), 2, 2}))};
}

}  // namespace

constinit const Op complex_cholesky = {
    .name = "complex_cholesky",
    .summary = "cholesky of Hermitian matrices: x = l l^H (u^H u), and info",
    .operands = kMatrixParts,
    .attributes = attribute_schema<Cholesky>(),
    .infer = infer_cholesky<Parts::kComplex>,
    .routine = "complex_cholesky",
    .samples = complex_cholesky_samples};
constinit const Op complex_lu_factor = {.name = "complex_lu_factor",
                                        .summary = "lu_factor of complex matrices",
                                        .operands = kMatrixParts,
                                        .infer = infer_lu_factor<Parts::kComplex>,
                                        .routine = "complex_lu_factor",
                                        .samples = complex_lu_factor_samples};
constinit const Op complex_triangular_solve = {.name = "complex_triangular_solve",
                                               .summary = "triangular_solve of complex matrices",
                                               .operands = kSolveParts,
                                               .attributes = attribute_schema<TriangularSolve>(),
                                               .infer = infer_triangular_solve<Parts::kComplex>,
                                               .routine = "complex_triangular_solve",
                                               .samples = complex_triangular_solve_samples};
constinit const Op complex_householder_qr = {.name = "complex_householder_qr",
                                             .summary = "householder_qr of complex matrices",
                                             .operands = kMatrixParts,
                                             .infer = infer_householder_qr<Parts::kComplex>,
                                             .routine = "complex_householder_qr",
                                             .samples = complex_householder_qr_samples};
constinit const Op complex_householder_product = {.name = "complex_householder_product",
                                                  .summary = "householder_product of complex matrices",
                                                  .operands = kReflectionParts,
                                                  .infer = infer_householder_product<Parts::kComplex>,
                                                  .routine = "complex_householder_product",
                                                  .samples = complex_householder_product_samples};
constinit const Op hermitian_eigen = {.name = "hermitian_eigen",
                                      .summary = "symmetric_eigen of Hermitian matrices; the values are real",
                                      .operands = kMatrixParts,
                                      .attributes = attribute_schema<SymmetricEigen>(),
                                      .infer = infer_symmetric_eigen<Parts::kComplex>,
                                      .routine = "hermitian_eigen",
                                      .samples = hermitian_eigen_samples};
constinit const Op complex_eigen = {.name = "complex_eigen",
                                    .summary = "eigen of complex matrices",
                                    .operands = kMatrixParts,
                                    .attributes = attribute_schema<Eigen>(),
                                    .infer = infer_eigen<Parts::kComplex>,
                                    .routine = "complex_eigen",
                                    .samples = complex_eigen_samples};
constinit const Op complex_singular_values = {
    .name = "complex_singular_values",
    .summary = "singular_values of complex matrices; the values are real",
    .operands = kMatrixParts,
    .attributes = attribute_schema<SingularValues>(),
    .infer = infer_singular_values<Parts::kComplex>,
    .routine = "complex_singular_values",
    .samples = complex_singular_values_samples};
constinit const Op complex_matrix_exponential = {.name = "complex_matrix_exponential",
                                                 .summary = "matrix_exponential of complex matrices",
                                                 .operands = kMatrixParts,
                                                 .infer = infer_matrix_exponential<Parts::kComplex>,
                                                 .routine = "complex_matrix_exponential",
                                                 .samples = complex_matrix_exponential_samples};

}  // namespace ingot::core::ops
