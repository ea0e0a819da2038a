// SPDX-License-Identifier: Apache-2.0
#include "routines/matrices.h"

#include <algorithm>

namespace ingot::core::routines {
namespace {

template <typename Element>
using RowMajor = Eigen::Matrix<Element, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// The tensor as matrices of its last `dims` dims.
Matrices split_at(const TensorView& view, size_t dims) {
  require_fit(view.shape.size() >= dims, "linear algebra");
  Matrices result;
  const size_t outer = view.shape.size() - dims;
  for (size_t i = 0; i < outer; ++i) result.count *= view.shape[i];
  if (dims == 2) result.rows = view.shape[outer];
  result.columns = view.shape.back();
  return result;
}

template <typename Element>
auto mapped(const TensorView& view, const Matrices& sizes, int64_t index) {
  auto* first = reinterpret_cast<Element*>(view.data) + index * sizes.rows * sizes.columns;
  return Eigen::Map<RowMajor<Element>>(first, sizes.rows, sizes.columns);
}

Matrix read(const TensorView& view, const Matrices& sizes, int64_t index) {
  if (view.dtype == DType::kF64) return mapped<double>(view, sizes, index);
  return mapped<float>(view, sizes, index).cast<double>();
}
void write(const TensorView& view, const Matrices& sizes, int64_t index,
           const Eigen::Ref<const Matrix>& matrix) {
  if (view.dtype == DType::kF64) {
    mapped<double>(view, sizes, index) = matrix;
  } else {
    mapped<float>(view, sizes, index) = matrix.cast<float>();
  }
}

}  // namespace

Matrices matrices_of(const TensorView& view) { return split_at(view, 2); }
Matrices vectors_of(const TensorView& view) { return split_at(view, 1); }

Matrix read_matrix(const TensorView& view, int64_t index) { return read(view, matrices_of(view), index); }
void write_matrix(const TensorView& view, int64_t index, const Eigen::Ref<const Matrix>& matrix) {
  write(view, matrices_of(view), index, matrix);
}
Eigen::VectorXd read_vector(const TensorView& view, int64_t index) {
  return read(view, vectors_of(view), index).transpose();
}
void write_vector(const TensorView& view, int64_t index, const Eigen::Ref<const Eigen::VectorXd>& vector) {
  write(view, vectors_of(view), index, vector.transpose());
}

void require_matrices(const RoutineCall& call, size_t inputs, size_t outputs) {
  require_fit(call.inputs.size() == inputs && call.outputs.size() == outputs, "linear algebra");
  const DType dtype = call.inputs[0].dtype;
  require_fit(dtype == DType::kF32 || dtype == DType::kF64, "linear algebra");
  const auto fits = [&](const TensorView& view) { return view.dtype == dtype || view.dtype == DType::kI32; };
  require_fit(std::ranges::all_of(call.inputs, fits) && std::ranges::all_of(call.outputs, fits),
              "linear algebra");
}

}  // namespace ingot::core::routines
