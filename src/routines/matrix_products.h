// SPDX-License-Identifier: Apache-2.0
// Products of matrices in f64, in the widest vectors of the processor.
#pragma once

#include <complex>
#include <cstdint>

namespace ingot::core::routines {

// Element (i, k) is at i * row + k * column.
struct MatrixFactor {
  const double* data;
  int64_t row, column;
};

// c += alpha a b, where element (i, j) of c is at i * row + j * column. std::bad_alloc if there is no memory
// for copies of a and b.
struct MatrixProduct {
  int64_t rows, columns, depth;
  double alpha;
  MatrixFactor a, b;
  double* c;
  int64_t row, column;
};
void add_matrix_product(const MatrixProduct& product);

// The same of complex elements: strides count them, and `conjugate` is of a factor's elements.
struct ComplexFactor {
  const std::complex<double>* data;
  int64_t row, column;
  bool conjugate;
};
struct ComplexProduct {
  int64_t rows, columns, depth;
  std::complex<double> alpha;
  ComplexFactor a, b;
  std::complex<double>* c;
  int64_t column;
};
void add_matrix_product(const ComplexProduct& product);

}  // namespace ingot::core::routines
