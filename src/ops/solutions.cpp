// SPDX-License-Identifier: Apache-2.0
// Factorizations of symmetric matrices that need not be definite, solutions by these, and least squares; of
// matrices whose parts are two operands too.
#include "ops/matrix_types.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kSymmetric[] = {{"x", DTypeSet::kFloating}};
constexpr Operand kHermitian[] = {{"re", DTypeSet::kFloating}, {"im", DTypeSet::kFloating}};
constexpr Operand kFactorized[] = {
    {"ld", DTypeSet::kFloating}, {"b", DTypeSet::kFloating}, {"pivots", DTypeSet::kIndex}};
constexpr Operand kFactorizedParts[] = {{"ld_re", DTypeSet::kFloating},
                                        {"ld_im", DTypeSet::kFloating},
                                        {"b_re", DTypeSet::kFloating},
                                        {"b_im", DTypeSet::kFloating},
                                        {"pivots", DTypeSet::kIndex}};
constexpr Operand kEquation[] = {{"a", DTypeSet::kFloating}, {"b", DTypeSet::kFloating}};
constexpr Operand kEquationParts[] = {{"a_re", DTypeSet::kFloating},
                                      {"a_im", DTypeSet::kFloating},
                                      {"b_re", DTypeSet::kFloating},
                                      {"b_im", DTypeSet::kFloating}};

Samples ldl_factor_samples() { return {sample({f32({4, 4})}), sample({f32({batch(), 3, 3})})}; }
Samples complex_ldl_factor_samples() {
  return {sample({f32({4, 4}), f32({4, 4})}, Ldl{true}),
          sample({f32({batch(), 3, 3}), f32({batch(), 3, 3})}, Ldl{false})};
}
// Blocks of one row: diagonals are not small, and each pivot is the last row.
Samples ldl_solve_samples() {
  return {sample({f32({3, 3}, 1, 2), f32({3, 2}), tensor(DType::kI32, {3}, 3, 3)}),
          sample({f32({batch(), 2, 2}, 1, 2), f32({batch(), 2, length()}),
                  tensor(DType::kI32, {batch(), 2}, 2, 2)})};
}
Samples complex_ldl_solve_samples() {
  const auto of = [](bool hermitian) {
    return sample({f32({batch(), 3, 3}, 1, 2), f32({batch(), 3, 3}), f32({batch(), 3, 2}),
                   f32({batch(), 3, 2}), tensor(DType::kI32, {batch(), 3}, 3, 3)},
                  Ldl{hermitian});
  };
  return {of(true), of(false)};
}
// Of columns that are far from dependent.
Samples least_squares_samples() {
  return {sample({f32({4, 1}, 1, 2), f32({4, 2})}, LeastSquares{"gels"}),
          sample({f32({batch(), 1, 3}, 1, 2), f32({batch(), 1, length()})}, LeastSquares{"gelsy"}),
          sample({f32({batch(), 3, 1}, 1, 2), f32({batch(), 3, 2})}, LeastSquares{"gelsd", true, 1e-3})};
}
Samples complex_least_squares_samples() {
  const auto of = [](const Shape& a, const Shape& b, const char* driver) {
    return sample({f32(a, 1, 2), f32(a), f32(b), f32(b)}, LeastSquares{driver});
  };
  return {of({4, 1}, {4, 2}, "gels"), of({batch(), 1, 3}, {batch(), 1, length()}, "gelsy"),
          of({batch(), 3, 1}, {batch(), 3, 2}, "gelss")};
}

}  // namespace

constinit const Op ldl_factor = {
    .name = "ldl_factor",
    .summary =
        "l below the diagonal and d of x = l d l^T, by its lower triangle; the rows exchanged, from 1, "
        "negative in blocks of two rows; and info",
    .operands = kSymmetric,
    .infer = infer_ldl_factor<Parts::kReal>,
    .routine = "ldl_factor",
    .samples = ldl_factor_samples};
constinit const Op complex_ldl_factor = {
    .name = "complex_ldl_factor",
    .summary = "ldl_factor of Hermitian matrices, or of complex symmetric ones",
    .operands = kHermitian,
    .attributes = attribute_schema<Ldl>(),
    .infer = infer_ldl_factor<Parts::kComplex>,
    .routine = "complex_ldl_factor",
    .samples = complex_ldl_factor_samples};
constinit const Op ldl_solve = {.name = "ldl_solve",
                                .summary = "the x of a x = b, for the ldl_factor of a",
                                .operands = kFactorized,
                                .infer = infer_ldl_solve<Parts::kReal>,
                                .routine = "ldl_solve",
                                .samples = ldl_solve_samples};
constinit const Op complex_ldl_solve = {
    .name = "complex_ldl_solve",
    .summary = "ldl_solve of Hermitian matrices, or of complex symmetric ones",
    .operands = kFactorizedParts,
    .attributes = attribute_schema<Ldl>(),
    .infer = infer_ldl_solve<Parts::kComplex>,
    .routine = "complex_ldl_solve",
    .samples = complex_ldl_solve_samples};
constinit const Op least_squares = {
    .name = "least_squares",
    .summary =
        "the shortest x of least |a x - b|; the squares of these lengths; the rank; and the singular "
        "values, if the driver finds them",
    .operands = kEquation,
    .attributes = attribute_schema<LeastSquares>(),
    .infer = infer_least_squares<Parts::kReal>,
    .routine = "least_squares",
    .samples = least_squares_samples};
constinit const Op complex_least_squares = {.name = "complex_least_squares",
                                            .summary = "least_squares of complex matrices",
                                            .operands = kEquationParts,
                                            .attributes = attribute_schema<LeastSquares>(),
                                            .infer = infer_least_squares<Parts::kComplex>,
                                            .routine = "complex_least_squares",
                                            .samples = complex_least_squares_samples};

}  // namespace ingot::core::ops
