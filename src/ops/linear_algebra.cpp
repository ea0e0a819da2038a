// SPDX-License-Identifier: Apache-2.0
// Factorizations of batches of matrices, which are the last two dims. `info` is 0, or counts from 1 where the
// matrix could not be factorized.
#include "ops/linear_algebra.h"
#include "ops/infer.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kMatrixOperands[] = {{"x", DTypeSet::kFloating}};
constexpr Operand kComplexMatrixOperands[] = {{"re", DTypeSet::kFloating}, {"im", DTypeSet::kFloating}};
constexpr Operand kReflectionOperands[] = {{"x", DTypeSet::kFloating}, {"scales", DTypeSet::kFloating}};
constexpr Operand kPivotOperands[] = {{"lu", DTypeSet::kFloating}, {"pivots", DTypeSet::kIndex}};
constexpr Operand kSolveOperands[] = {{"a", DTypeSet::kFloating}, {"b", DTypeSet::kFloating}};

// The type of operand 0, of f32 or f64, without its last two dims.
struct MatrixType {
  DType dtype;
  Shape batch;
  Dim rows, columns;

  explicit MatrixType(const Node& node)
      : dtype(node.operand_type(0).dtype), batch(node.operand_type(0).shape) {
    require(batch.size() >= 2, node, "a matrix must have two dims");
    require(dtype == DType::kF32 || dtype == DType::kF64, node, "the dtype must be f32 or f64");
    columns = batch.back();
    batch.pop_back();
    rows = batch.back();
    batch.pop_back();
  }
  TensorType with(DType of, std::vector<Dim> last) const {
    Shape shape = batch;
    shape.insert(shape.end(), last.begin(), last.end());
    return {of, std::move(shape), {}};
  }
  TensorType same(const std::vector<Dim>& last) const { return with(dtype, last); }
  Dim smaller() const { return core::minimum(rows, columns); }
  void require_square(const Node& node) const {
    require(rows == columns, node, "the matrices must be square");
  }
};

Types infer_cholesky(const Node& node) {
  const MatrixType x(node);
  x.require_square(node);
  return {x.same({x.rows, x.rows}), x.with(DType::kI32, {})};
}
Types infer_lu_factor(const Node& node) {
  const MatrixType x(node);
  return {x.same({x.rows, x.columns}), x.with(DType::kI32, {x.smaller()}), x.with(DType::kI32, {})};
}
Types infer_row_order(const Node& node) {
  const MatrixType lu(node);
  require(node.operand_type(1).dtype == DType::kI32, node, "the pivots must be i32");
  require_shape(node, 1, lu.with(DType::kI32, {lu.smaller()}).shape);
  return {lu.with(DType::kI64, {lu.rows})};
}
Types infer_triangular_solve(const Node& node) {
  require_same_dtype(node);
  const MatrixType a(node);
  a.require_square(node);
  const TensorType& b = node.operand_type(1);
  require(b.rank() == a.batch.size() + 2, node, "a and b must have as many dims");
  require_shape(node, 1, a.same({a.rows, b.shape.back()}).shape);
  return {{b.dtype, b.shape, {}}};
}
Types infer_householder_qr(const Node& node) {
  const MatrixType x(node);
  return {x.same({x.rows, x.columns}), x.same({x.smaller()})};
}
Types infer_householder_product(const Node& node) {
  require_same_dtype(node);
  const MatrixType x(node);
  const Shape& scales = node.operand_type(1).shape;
  require(!scales.empty(), node, "the scales must be vectors");
  require_shape(node, 1, x.same({scales.back()}).shape);
  return {x.same({x.rows, x.columns})};
}
Types infer_symmetric_eigen(const Node& node) {
  const MatrixType x(node);
  x.require_square(node);
  if (!node.attributes<SymmetricEigen>().vectors) return {x.same({x.rows})};
  return {x.same({x.rows}), x.same({x.rows, x.rows})};
}
// The parts of the values, then those of the vectors.
Types eigen_types(const Node& node) {
  const MatrixType x(node);
  x.require_square(node);
  const TensorType values = x.same({x.rows}), vectors = x.same({x.rows, x.rows});
  if (!node.attributes<Eigen>().vectors) return {values, values};
  return {values, values, vectors, vectors};
}
Types infer_complex_eigen(const Node& node) {
  require_same_dtype(node);
  require_shape(node, 1, node.operand_type(0).shape);
  return eigen_types(node);
}
Types infer_singular_values(const Node& node) {
  const MatrixType x(node);
  const Dim small = x.smaller();
  const bool full = node.attributes<SingularValues>().full;
  if (!node.attributes<SingularValues>().vectors) return {x.same({small})};
  return {x.same({x.rows, full ? x.rows : small}), x.same({small}),
          x.same({full ? x.columns : small, x.columns})};
}
Types infer_matrix_exponential(const Node& node) {
  const MatrixType x(node);
  x.require_square(node);
  return {x.same({x.rows, x.rows})};
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
Samples complex_eigen_samples() {
  return {sample({f32({batch(), 1, 1}), f32({batch(), 1, 1})}, Eigen{true}),
          sample({f32({2, 1, 1}), f32({2, 1, 1})}, Eigen{false})};
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
                               .infer = infer_cholesky,
                               .routine = "cholesky",
                               .samples = cholesky_samples};
constinit const Op lu_factor = {
    .name = "lu_factor",
    .summary = "l below the diagonal and u, with rows of x exchanged; the rows exchanged, from 1; and info",
    .operands = kMatrixOperands,
    .infer = infer_lu_factor,
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
                                       .infer = infer_triangular_solve,
                                       .routine = "triangular_solve",
                                       .samples = triangular_solve_samples};
constinit const Op householder_qr = {
    .name = "householder_qr",
    .summary = "r, and below its diagonal the reflections whose product is q; and their scales",
    .operands = kMatrixOperands,
    .infer = infer_householder_qr,
    .routine = "householder_qr",
    .samples = householder_qr_samples};
constinit const Op householder_product = {
    .name = "householder_product",
    .summary = "the first columns of the product of reflections, as many as x has",
    .operands = kReflectionOperands,
    .infer = infer_householder_product,
    .routine = "householder_product",
    .samples = householder_product_samples};
constinit const Op symmetric_eigen = {
    .name = "symmetric_eigen",
    .summary = "the eigenvalues of symmetric matrices, ascending, and their vectors as columns",
    .operands = kMatrixOperands,
    .attributes = attribute_schema<SymmetricEigen>(),
    .infer = infer_symmetric_eigen,
    .routine = "symmetric_eigen",
    .samples = symmetric_eigen_samples};
constinit const Op eigen = {
    .name = "eigen",
    .summary =
        "the eigenvalues of real matrices, and their vectors as columns: the real parts, the imaginary parts",
    .operands = kMatrixOperands,
    .attributes = attribute_schema<Eigen>(),
    .infer = eigen_types,
    .routine = "eigen",
    .samples = eigen_samples};
constinit const Op complex_eigen = {.name = "complex_eigen",
                                    .summary = "eigen of complex matrices",
                                    .operands = kComplexMatrixOperands,
                                    .attributes = attribute_schema<Eigen>(),
                                    .infer = infer_complex_eigen,
                                    .routine = "complex_eigen",
                                    .samples = complex_eigen_samples};
constinit const Op singular_values = {.name = "singular_values",
                                      .summary = "u, s and vh of x = u diag(s) vh; s is descending",
                                      .operands = kMatrixOperands,
                                      .attributes = attribute_schema<SingularValues>(),
                                      .infer = infer_singular_values,
                                      .routine = "singular_values",
                                      .samples = singular_values_samples};
constinit const Op matrix_exponential = {.name = "matrix_exponential",
                                         .summary = "the sum over k of the powers of x over k!",
                                         .operands = kMatrixOperands,
                                         .infer = infer_matrix_exponential,
                                         .routine = "matrix_exponential",
                                         .samples = matrix_exponential_samples};

}  // namespace ingot::core::ops
