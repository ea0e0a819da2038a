// SPDX-License-Identifier: Apache-2.0
// A reflection changes all that remains of the matrix by a product of two vectors. That is left for the next
// one, which reads and writes the matrix anyway: once per reflection of a symmetric matrix, and of others
// once for the left and, without writing, once for the right one.
#include "routines/condensed_forms.h"

#include <algorithm>

#include "routines/one_reflection.h"

namespace ingot::core::routines {
namespace {

using Eigen::Index;

void keep(KeptReflections* kept, Index index, const double* v, double scale) {
  if (kept == nullptr) return;
  kept->scales(index) = scale;
  std::copy_n(v, kept->vectors.rows() - index, kept->vectors.col(index).data() + index);
}
void prepare(KeptReflections* kept, Index rows, Index columns) {
  if (kept == nullptr) return;
  kept->vectors = Matrix::Zero(rows, columns);
  kept->scales = Eigen::VectorXd::Zero(columns);
}

}  // namespace

CondensedForm bidiagonal_of(const Matrix& x, KeptReflections* left, KeptReflections* right) {
  const Index rows = x.rows(), columns = x.cols();
  CondensedForm form{Eigen::VectorXd(columns), Eigen::VectorXd(columns - 1)};
  prepare(left, rows, columns);
  prepare(right, columns - 1, columns - 1);
  PaddedColumns a(rows, columns);
  for (Index j = 0; j < columns; ++j) std::copy_n(x.col(j).data(), rows, a.column(j));
  const WorkVectors vectors(rows);
  // a still lacks the products of p and q, and of r and s.
  double *p = vectors[0], *q = vectors[1], *r = vectors[2], *s = vectors[3], *u = vectors[4], *v = vectors[5];
  for (Index k = 0; k < columns; ++k) {
    double* const column = a.column(k);
    for (Index i = k; i < rows; ++i) u[i] = column[i] - p[i] * q[k] - r[i] * s[k];
    const Index start = aligned(k), height = a.rows() - start, width = columns - k - 1;
    std::fill(u + start, u + k, 0.0);
    const auto [left_scale, diagonal] = reflect(u + k, rows - k);
    form.diagonal(k) = diagonal;
    keep(left, k, u + k, left_scale);
    if (width == 0) break;
    double* const rest = a.column(k + 1) + start;
    update_columns({rest,
                    a.stride(),
                    height,
                    width,
                    {p + start, r + start},
                    {q + k + 1, s + k + 1},
                    u + start,
                    v + k + 1});
    for (Index j = k + 1; j < columns; ++j) {
      q[j] = v[j] * left_scale;
      v[j] = a.column(j)[k] - q[j];
    }
    const auto [right_scale, beside] = reflect(v + k + 1, width);
    form.beside(k) = beside;
    keep(right, k, v + k + 1, right_scale);
    sum_columns({rest, a.stride(), height, width, v + k + 1, r + start});
    double along = 0;
    for (Index j = k + 1; j < columns; ++j) along += q[j] * v[j];
    std::fill(r + start, r + k, 0.0);
    for (Index i = k; i < rows; ++i) r[i] = right_scale * (r[i] - u[i] * along);
    std::swap(p, u);
    std::swap(s, v);
  }
  return form;
}

CondensedForm tridiagonal_of(const Matrix& lower, KeptReflections* kept) {
  const Index size = lower.rows();
  CondensedForm form{Eigen::VectorXd(size), Eigen::VectorXd(size - 1)};
  prepare(kept, size - 1, size - 1);
  PaddedColumns a(size, size);
  for (Index j = 0; j < size; ++j) {
    for (Index i = 0; i < size; ++i) a.column(j)[i] = i < j ? lower(j, i) : lower(i, j);
  }
  const WorkVectors vectors(size);
  // a still lacks the products of v and w, both ways.
  double *v = vectors[0], *w = vectors[1], *u = vectors[2], *product = vectors[3];
  for (Index k = 0; k < size; ++k) {
    double* const column = a.column(k);
    for (Index i = k; i < size; ++i) u[i] = column[i] - v[i] * w[k] - w[i] * v[k];
    form.diagonal(k) = u[k];
    const Index first = k + 1, width = size - first, start = aligned(first);
    if (width == 0) break;
    std::fill(u + start, u + first, 0.0);
    const auto [scale, beside] = reflect(u + first, width);
    form.beside(k) = beside;
    keep(kept, k, u + first, scale);
    update_columns({a.column(first) + start,
                    a.stride(),
                    a.rows() - start,
                    width,
                    {v + start, w + start},
                    {w + first, v + first},
                    u + start,
                    product + first});
    double along = 0;
    for (Index i = first; i < size; ++i) along += product[i] * u[i];
    along *= scale * scale / 2;
    std::fill(product + start, product + first, 0.0);
    for (Index i = first; i < size; ++i) product[i] = scale * product[i] - along * u[i];
    std::swap(v, u);
    std::swap(w, product);
  }
  return form;
}

}  // namespace ingot::core::routines
