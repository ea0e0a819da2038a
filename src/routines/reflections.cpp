// SPDX-License-Identifier: Apache-2.0
// The product of several reflections is I - V T V^H with a triangle T, so that most of the work is products
// of matrices.
#include "routines/reflections.h"

#include <algorithm>
#include <cmath>

#include "routines/one_reflection.h"

namespace ingot::core::routines {
namespace {

using Eigen::Index;
constexpr Index kReflectedAlone = 32;     // columns that are reflected one by one
constexpr Index kReflectedTogether = 32;  // reflections that are applied together
constexpr Index kFewReflections = 12;     // so few that copies for products take longer than reflecting
constexpr Index kFewRows = 12;            // so few that kernels for columns take longer than plain loops

template <typename Given>
struct Reflections {
  Given v, t;

  Reflections(const Eigen::Ref<const Given>& vectors, const Eigen::Ref<const VectorOf<Given>>& scales)
      : v(vectors.template triangularView<Eigen::UnitLower>()), t(scales.size(), scales.size()) {
    Given lengths = Given::Zero(v.cols(), v.cols());
    add_product<Given>(lengths, 1, {v, true}, {v});
    t.setZero();
    for (Index k = 0; k < scales.size(); ++k) {
      t.col(k).head(k).noalias() = t.topLeftCorner(k, k) * (lengths.col(k).head(k) * -scales(k));
      t(k, k) = scales(k);
    }
  }
  // x becomes the product of the reflections, or its adjoint, by x.
  void apply(RefOf<Given> x, bool is_adjoint) const {
    Given along = Given::Zero(v.cols(), x.cols()), scaled = along;
    add_product<Given>(along, 1, {v, true}, {x});
    add_product<Given>(scaled, 1, {t, is_adjoint}, {along});
    add_product<Given>(x, -1, {v}, {scaled});
  }
};

// The power of two by which the largest element of x becomes about 1.
double scale_to_one(const Eigen::Ref<const Matrix>& x) {
  const double largest = x.cwiseAbs().maxCoeff();
  return largest > 0 && std::isfinite(largest) ? std::ldexp(1.0, -std::ilogb(largest)) : 1;
}

// The reflection by [1, below], of a vector of one element more than `below`.
void reflect_column(const double* below, Index size, double scale, double* x) {
  double along = x[0];
  for (Index i = 0; i < size; ++i) along += below[i] * x[i + 1];
  along *= scale;
  x[0] -= along;
  for (Index i = 0; i < size; ++i) x[i + 1] -= along * below[i];
}

// `scale` is what x was multiplied by.
void reflect_few_rows(Eigen::Ref<Matrix> x, Eigen::Ref<VectorOf<Matrix>> scales, double scale) {
  for (Index k = 0; k < scales.size(); ++k) {
    const Index below = x.rows() - k - 1;
    double* const v = &x(k, k);
    const auto [factor, length] = reflect(v, below + 1);
    scales(k) = factor;
    x(k, k) = length / scale;
    for (Index j = k + 1; j < x.cols(); ++j) {
      reflect_column(v + 1, below, factor, &x(k, j));
      x(k, j) /= scale;
    }
  }
}

// What a reflection subtracts, a product of two vectors, is left for the next one, which reads and writes the
// columns anyway.
void reflect_columns(Eigen::Ref<Matrix> x, Eigen::Ref<VectorOf<Matrix>> scales) {
  const Index rows = x.rows(), columns = x.cols();
  const double scale = scale_to_one(x);
  if (rows <= kFewRows) {
    x *= scale;
    return reflect_few_rows(x, scales, scale);
  }
  PaddedColumns a(rows, columns);
  for (Index j = 0; j < columns; ++j) {
    for (Index i = 0; i < rows; ++i) a.column(j)[i] = x(i, j) * scale;
  }
  const WorkVectors vectors(std::max(rows, columns));
  double *v = vectors[0], *w = vectors[1], *u = vectors[2], *along = vectors[3];
  const double* const zeros = vectors[4];
  for (Index k = 0; k < scales.size(); ++k) {
    const double* const column = a.column(k);
    const Index start = aligned(k), first = k + 1, width = columns - first;
    for (Index i = k; i < rows; ++i) u[i] = column[i] - v[i] * w[k];
    std::fill(u + start, u + k, 0.0);
    const auto [factor, length] = reflect(u + k, rows - k);
    scales(k) = factor;
    x(k, k) = length / scale;
    std::copy_n(u + first, rows - first, x.col(k).data() + first);
    if (width == 0) break;
    update_columns({a.column(first) + start,
                    a.stride(),
                    a.rows() - start,
                    width,
                    {v + start, zeros},
                    {w + first, zeros},
                    u + start,
                    along + first});
    for (Index j = first; j < columns; ++j) {
      w[j] = along[j] * factor;
      x(k, j) = (a.column(j)[k] - w[j]) / scale;
    }
    std::swap(v, u);
  }
}

Matrix product_of_few_rows(const Matrix& vectors, const VectorOf<Matrix>& scales) {
  Matrix x = Matrix::Identity(vectors.rows(), vectors.cols());
  for (Index k = scales.size(); k-- > 0;) {
    const Index below = x.rows() - k - 1;
    for (Index j = k; j < x.cols(); ++j)
      reflect_column(vectors.col(k).data() + k + 1, below, scales(k), &x(k, j));
  }
  return x;
}

void reflect_columns(Eigen::Ref<ComplexMatrix> x, Eigen::Ref<VectorOf<ComplexMatrix>> scales) {
  using Given = ComplexMatrix;
  VectorOf<Given> work(x.cols());
  for (Index k = 0; k < scales.size(); ++k) {
    const Index rows = x.rows() - k, right = x.cols() - k - 1;
    typename Given::Scalar scale;
    double diagonal;
    x.col(k).tail(rows).makeHouseholderInPlace(scale, diagonal);
    x(k, k) = diagonal;
    x.bottomRightCorner(rows, right).applyHouseholderOnTheLeft(x.col(k).tail(rows - 1), scale, work.data());
    scales(k) = Eigen::numext::conj(scale);  // Eigen reflects by the adjoint
  }
}

}  // namespace

template <typename Given>
void factor_qr(Eigen::Ref<Given> x, Eigen::Ref<VectorOf<Given>> scales) {
  const Index count = scales.size(), rows = x.rows(), columns = x.cols();
  if (count <= kReflectedAlone && columns <= kReflectedAlone) return reflect_columns(x, scales);
  const Index left = std::min({count, kReflectedTogether, (columns + 1) / 2}), right = columns - left;
  factor_qr<Given>(x.leftCols(left), scales.head(left));
  if (right == 0) return;
  Reflections<Given>(x.leftCols(left), scales.head(left)).apply(x.rightCols(right), true);
  if (left == count) return;
  factor_qr<Given>(x.bottomRightCorner(rows - left, right), scales.tail(count - left));
}

template <typename Given>
Given product_of_reflections(const Given& vectors, const VectorOf<Given>& scales) {
  if constexpr (std::is_same_v<Given, Matrix>) {
    if (vectors.rows() <= kFewRows) return product_of_few_rows(vectors, scales);
  }
  Given x = Given::Identity(vectors.rows(), vectors.cols());
  if (scales.size() <= kFewReflections) {
    VectorOf<Given> work(x.cols());
    for (Index k = scales.size(); k-- > 0;) {
      const Index below = x.rows() - k;
      x.bottomRightCorner(below, x.cols() - k)
          .applyHouseholderOnTheLeft(vectors.col(k).tail(below - 1), scales(k), work.data());
    }
    return x;
  }
  for (Index end = scales.size(); end > 0;) {
    const Index size = (end - 1) % kReflectedTogether + 1, first = end - size, below = x.rows() - first;
    // Earlier columns of x are still zero in these rows.
    Reflections<Given>(vectors.block(first, first, below, size), scales.segment(first, size))
        .apply(x.bottomRightCorner(below, x.cols() - first), false);
    end = first;
  }
  return x;
}

#define INSTANTIATE(Given)                                                        \
  template void factor_qr<Given>(Eigen::Ref<Given>, Eigen::Ref<VectorOf<Given>>); \
  template Given product_of_reflections<Given>(const Given&, const VectorOf<Given>&);
INSTANTIATE(Matrix)
INSTANTIATE(ComplexMatrix)
#undef INSTANTIATE

}  // namespace ingot::core::routines
