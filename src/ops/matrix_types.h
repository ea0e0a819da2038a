// SPDX-License-Identifier: Apache-2.0
// Shape rules of linear algebra, of matrices that are one tensor of reals or two tensors: the real and the
// imaginary parts. The parts of complex results are neighbours too.
#pragma once

#include <initializer_list>
#include <utility>

#include "ops/infer.h"
#include "ops/matrix_attributes.h"

namespace ingot::core::ops {

enum class Parts : uint8_t { kReal = 1, kComplex = 2 };

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

// Requires that the parts of operand 0, and of a second one, are alike.
template <Parts kParts>
MatrixType matrix_type(const Node& node) {
  if constexpr (kParts == Parts::kComplex) {
    for (size_t i = 0; i + 1 < node.operands.size(); i += 2)
      require(node.operand_type(i) == node.operand_type(i + 1), node,
              "real and imaginary parts must be alike");
  }
  return MatrixType(node);
}
template <Parts kParts>
Types in_parts(const TensorType& type) {
  return Types(static_cast<size_t>(kParts), type);
}
inline Types joined_types(std::initializer_list<Types> lists) {
  Types all;
  for (const Types& types : lists) all.insert(all.end(), types.begin(), types.end());
  return all;
}

template <Parts kParts>
Types infer_cholesky(const Node& node) {
  const MatrixType x = matrix_type<kParts>(node);
  x.require_square(node);
  return joined_types({in_parts<kParts>(x.same({x.rows, x.rows})), {x.with(DType::kI32, {})}});
}
template <Parts kParts>
Types infer_lu_factor(const Node& node) {
  const MatrixType x = matrix_type<kParts>(node);
  return joined_types({in_parts<kParts>(x.same({x.rows, x.columns})),
                       {x.with(DType::kI32, {x.smaller()}), x.with(DType::kI32, {})}});
}
// The right-hand side, operand `index`: as many rows, in the same batch.
inline const TensorType& right_type(const Node& node, const MatrixType& a, size_t index) {
  const TensorType& b = node.operand_type(index);
  require(b.rank() == a.batch.size() + 2, node, "a and b must have as many dims");
  require(b.dtype == a.dtype, node, "a and b must have the same dtype");
  require_shape(node, index, a.same({a.rows, b.shape.back()}).shape);
  return b;
}
template <Parts kParts>
Types infer_triangular_solve(const Node& node) {
  const MatrixType a = matrix_type<kParts>(node);
  a.require_square(node);
  const TensorType& b = right_type(node, a, static_cast<size_t>(kParts));
  return in_parts<kParts>({b.dtype, b.shape, {}});
}
template <Parts kParts>
Types infer_ldl_factor(const Node& node) {
  const MatrixType x = matrix_type<kParts>(node);
  x.require_square(node);
  return joined_types(
      {in_parts<kParts>(x.same({x.rows, x.rows})), {x.with(DType::kI32, {x.rows}), x.with(DType::kI32, {})}});
}
// The operands are ld, b and the pivots.
template <Parts kParts>
Types infer_ldl_solve(const Node& node) {
  const MatrixType ld = matrix_type<kParts>(node);
  ld.require_square(node);
  constexpr auto kRight = static_cast<size_t>(kParts);
  const TensorType& b = right_type(node, ld, kRight);
  require(node.operand_type(2 * kRight).dtype == DType::kI32, node, "the pivots must be i32");
  require_shape(node, 2 * kRight, ld.with(DType::kI32, {ld.rows}).shape);
  return in_parts<kParts>({b.dtype, b.shape, {}});
}
template <Parts kParts>
Types infer_least_squares(const Node& node) {
  const MatrixType a = matrix_type<kParts>(node);
  const Dim columns = right_type(node, a, static_cast<size_t>(kParts)).shape.back();
  const std::string& driver = node.attributes<LeastSquares>().driver;
  const bool has_values = driver == "gelsd" || driver == "gelss";
  require(has_values || driver == "gels" || driver == "gelsy", node,
          "the driver must be gels, gelsy, gelsd or gelss");
  return joined_types({in_parts<kParts>(a.same({a.columns, columns})),
                       {a.same({columns}), a.with(DType::kI32, {})},
                       has_values ? Types{a.same({a.smaller()})} : Types{}});
}
template <Parts kParts>
Types infer_householder_qr(const Node& node) {
  const MatrixType x = matrix_type<kParts>(node);
  return joined_types(
      {in_parts<kParts>(x.same({x.rows, x.columns})), in_parts<kParts>(x.same({x.smaller()}))});
}
template <Parts kParts>
Types infer_householder_product(const Node& node) {
  require_same_dtype(node);
  const MatrixType x = matrix_type<kParts>(node);
  constexpr auto kScales = static_cast<size_t>(kParts);
  const Shape& scales = node.operand_type(kScales).shape;
  require(!scales.empty(), node, "the scales must be vectors");
  require_shape(node, kScales, x.same({scales.back()}).shape);
  return in_parts<kParts>(x.same({x.rows, x.columns}));
}
// The eigenvalues of symmetric or Hermitian matrices are real.
template <Parts kParts>
Types infer_symmetric_eigen(const Node& node) {
  const MatrixType x = matrix_type<kParts>(node);
  x.require_square(node);
  if (!node.attributes<SymmetricEigen>().vectors) return {x.same({x.rows})};
  return joined_types({{x.same({x.rows})}, in_parts<kParts>(x.same({x.rows, x.rows}))});
}
// The parts of the values, then those of the vectors, also of real matrices.
template <Parts kParts>
Types infer_eigen(const Node& node) {
  const MatrixType x = matrix_type<kParts>(node);
  x.require_square(node);
  const TensorType values = x.same({x.rows}), vectors = x.same({x.rows, x.rows});
  if (!node.attributes<Eigen>().vectors) return {values, values};
  return {values, values, vectors, vectors};
}
template <Parts kParts>
Types infer_singular_values(const Node& node) {
  const MatrixType x = matrix_type<kParts>(node);
  const Dim small = x.smaller();
  const bool full = node.attributes<SingularValues>().full;
  if (!node.attributes<SingularValues>().vectors) return {x.same({small})};
  return joined_types({in_parts<kParts>(x.same({x.rows, full ? x.rows : small})),
                       {x.same({small})},
                       in_parts<kParts>(x.same({full ? x.columns : small, x.columns}))});
}
template <Parts kParts>
Types infer_matrix_exponential(const Node& node) {
  const MatrixType x = matrix_type<kParts>(node);
  x.require_square(node);
  return in_parts<kParts>(x.same({x.rows, x.rows}));
}

}  // namespace ingot::core::ops
