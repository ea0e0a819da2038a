// SPDX-License-Identifier: Apache-2.0
// Products of matrices in f64, in the widest vectors of the processor.
#pragma once

#include <complex>
#include <cstdint>

namespace ingot::core::routines {

// Element (i, k) is at i * row + k * column; `is_conjugate` is of complex elements.
template <typename Scalar>
struct FactorOf {
  const Scalar* data;
  int64_t row, column;
  bool is_conjugate = false;
};
// c += alpha a b, where element (i, j) of c is at i * row + j * column.
template <typename Scalar>
struct ProductOf {
  int64_t rows, columns, depth;
  Scalar alpha;
  FactorOf<Scalar> a, b;
  Scalar* c;
  int64_t row, column;
};
using MatrixFactor = FactorOf<double>;
using MatrixProduct = ProductOf<double>;

// std::bad_alloc if there is no memory for copies of a and b.
void add_matrix_product(const MatrixProduct& product);
void add_matrix_product(const ProductOf<std::complex<double>>& product);

}  // namespace ingot::core::routines
