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

template <typename Given>
Given read_matrix(Parts parts, int64_t index) {
  const Matrices sizes = matrices_of(parts[0]);
  if constexpr (std::is_same_v<Given, Matrix>) {
    return read(parts[0], sizes, index);
  } else {
    Given x(sizes.rows, sizes.columns);
    x.real() = read(parts[0], sizes, index);
    x.imag() = read(parts[1], sizes, index);
    return x;
  }
}
template <typename Given>
void write_matrix(Parts parts, int64_t index, const Given& matrix) {
  const Matrices sizes = matrices_of(parts[0]);
  write(parts[0], sizes, index, matrix.real());
  if constexpr (kParts<Given> == 2) write(parts[1], sizes, index, matrix.imag());
}
template <typename Given>
VectorOf<Given> read_vector(Parts parts, int64_t index) {
  const Matrices sizes = vectors_of(parts[0]);
  VectorOf<Given> x(sizes.columns);
  x.real() = read(parts[0], sizes, index).transpose();
  if constexpr (kParts<Given> == 2) x.imag() = read(parts[1], sizes, index).transpose();
  return x;
}
void write_reals(const TensorView& view, int64_t index, const Eigen::VectorXd& vector) {
  write(view, vectors_of(view), index, vector.transpose());
}
template <typename Given>
void write_vector(Parts parts, int64_t index, const VectorOf<Given>& vector) {
  write_reals(parts[0], index, vector.real());
  if constexpr (kParts<Given> == 2) write_reals(parts[1], index, vector.imag());
}
#define INSTANTIATE(Given)                                         \
  template Given read_matrix<Given>(Parts, int64_t);               \
  template void write_matrix<Given>(Parts, int64_t, const Given&); \
  template VectorOf<Given> read_vector<Given>(Parts, int64_t);     \
  template void write_vector<Given>(Parts, int64_t, const VectorOf<Given>&);
INSTANTIATE(Matrix)
INSTANTIATE(ComplexMatrix)
#undef INSTANTIATE

bool has_batch_of(const TensorView& matrices, const TensorView& view, std::initializer_list<int64_t> last) {
  const auto batch = std::span(matrices.shape).first(matrices.shape.size() - 2);
  return view.shape.size() == batch.size() + last.size() &&
         std::ranges::equal(batch, std::span(view.shape).first(batch.size())) &&
         std::ranges::equal(last, std::span(view.shape).last(last.size()));
}
bool are_vectors_of(Parts parts, const TensorView& matrices, int64_t size) {
  return std::ranges::all_of(parts, [&](const TensorView& part) {
    return part.dtype == matrices.dtype && has_batch_of(matrices, part, {size});
  });
}
bool are_batches_of(Parts parts, const TensorView& matrices, int64_t rows, int64_t columns) {
  return std::ranges::all_of(parts, [&](const TensorView& part) {
    return part.dtype == matrices.dtype && has_batch_of(matrices, part, {rows, columns});
  });
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
