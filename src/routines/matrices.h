// SPDX-License-Identifier: Apache-2.0
// Batches of matrices: the last two dims of a tensor. Linear algebra is computed in f64, whatever the dtype
// of the tensors, so that results are at least as close as those of a library that computes in f32.
#pragma once

#include <atomic>
#include <initializer_list>
#include <new>
#include <span>
#include <type_traits>

#ifndef EIGEN_NO_DEBUG
#define EIGEN_NO_DEBUG  // its assertions end the process
#endif
#ifndef EIGEN_MPL2_ONLY
#define EIGEN_MPL2_ONLY
#endif
#include <Eigen/Dense>

#include "routines/matrix_products.h"
#include "routines/routines.h"
#include "support/thread_pool.h"

namespace ingot::core::routines {

// Eigen's own products are compiled for the oldest processor.
template <typename Index, typename Scalar, int kLhsOrder, bool kLhsConjugate, int kRhsOrder,
          bool kRhsConjugate>
struct ProductOfEigen {
  using Traits = Eigen::internal::gebp_traits<Scalar, Scalar>;
  static void run(Index rows, Index columns, Index depth, const Scalar* a, Index a_stride, const Scalar* b,
                  Index b_stride, Scalar* c, Index, Index stride, Scalar alpha,
                  Eigen::internal::level3_blocking<Scalar, Scalar>&,
                  Eigen::internal::GemmParallelInfo<Index>* = nullptr) {
    const auto factor = [](const Scalar* data, Index lines, int order, bool is_conjugate) {
      const bool by_rows = order == Eigen::RowMajor;
      return FactorOf<Scalar>{data, by_rows ? lines : 1, by_rows ? 1 : lines, is_conjugate};
    };
    add_matrix_product(ProductOf<Scalar>{rows, columns, depth, alpha,
                                         factor(a, a_stride, kLhsOrder, kLhsConjugate),
                                         factor(b, b_stride, kRhsOrder, kRhsConjugate), c, 1, stride});
  }
};

}  // namespace ingot::core::routines

template <typename Index, int kLhsOrder, bool kLhsConjugate, int kRhsOrder, bool kRhsConjugate>
struct Eigen::internal::general_matrix_matrix_product<Index, double, kLhsOrder, kLhsConjugate, double,
                                                      kRhsOrder, kRhsConjugate, Eigen::ColMajor, 1>
    : ingot::core::routines::ProductOfEigen<Index, double, kLhsOrder, kLhsConjugate, kRhsOrder,
                                            kRhsConjugate> {};
template <typename Index, int kLhsOrder, bool kLhsConjugate, int kRhsOrder, bool kRhsConjugate>
struct Eigen::internal::general_matrix_matrix_product<Index, std::complex<double>, kLhsOrder, kLhsConjugate,
                                                      std::complex<double>, kRhsOrder, kRhsConjugate,
                                                      Eigen::ColMajor, 1>
    : ingot::core::routines::ProductOfEigen<Index, std::complex<double>, kLhsOrder, kLhsConjugate, kRhsOrder,
                                            kRhsConjugate> {};

namespace ingot::core::routines {

using Matrix = Eigen::MatrixXd;  // column-major
using ComplexMatrix = Eigen::MatrixXcd;
template <typename Given>
using VectorOf = Eigen::Matrix<typename Given::Scalar, Eigen::Dynamic, 1>;

template <typename Given>
using RefOf = Eigen::Ref<Given>;
template <typename Given>
using ConstRefOf = Eigen::Ref<const Given>;

// A matrix, or its adjoint.
template <typename Given>
struct Operand {
  ConstRefOf<Given> matrix;
  bool is_adjoint = false;

  int64_t depth() const { return is_adjoint ? matrix.rows() : matrix.cols(); }
  FactorOf<typename Given::Scalar> factor() const {
    const int64_t stride = matrix.outerStride();
    return {matrix.data(), is_adjoint ? stride : 1, is_adjoint ? 1 : stride, is_adjoint};
  }
};
// c += alpha a b
template <typename Given>
void add_product(RefOf<Given> c, double alpha, const Operand<Given>& a, const Operand<Given>& b) {
  add_matrix_product(ProductOf<typename Given::Scalar>{c.rows(), c.cols(), a.depth(), alpha, a.factor(),
                                                       b.factor(), c.data(), 1, c.outerStride()});
}

// By which LAPACK compares pivots.
inline double pivot_size(double x) { return std::abs(x); }
inline double pivot_size(const std::complex<double>& x) { return std::abs(x.real()) + std::abs(x.imag()); }

// The tensors of a matrix: itself, or its real and its imaginary parts.
using Parts = std::span<const TensorView>;
template <typename Given>
inline constexpr size_t kParts = std::is_same_v<Given, Matrix> ? 1 : 2;

// A tensor as `count` matrices, or, with rank 1 fewer, as `count` vectors of `columns` elements.
struct Matrices {
  int64_t count = 1, rows = 1, columns = 1;
};
Matrices matrices_of(const TensorView& view);  // UserError INGOT-U332 if it has fewer than two dims
Matrices vectors_of(const TensorView& view);   // likewise, one dim

// `Given` is Matrix or ComplexMatrix.
template <typename Given>
Given read_matrix(Parts parts, int64_t index);
template <typename Given>
void write_matrix(Parts parts, int64_t index, const Given& matrix);
template <typename Given>
VectorOf<Given> read_vector(Parts parts, int64_t index);
template <typename Given>
void write_vector(Parts parts, int64_t index, const VectorOf<Given>& vector);
void write_reals(const TensorView& view, int64_t index, const Eigen::VectorXd& vector);
// Vectors of i32, which are dense.
inline int32_t* integers_of(const TensorView& view, int64_t offset) {
  return reinterpret_cast<int32_t*>(view.data) + offset;
}

// Whether a tensor has the batch of `matrices`, and then these dims.
bool has_batch_of(const TensorView& matrices, const TensorView& view, std::initializer_list<int64_t> last);
// The same of tensors with the dtype of `matrices`: vectors, matrices.
bool are_vectors_of(Parts parts, const TensorView& matrices, int64_t size);
bool are_batches_of(Parts parts, const TensorView& matrices, int64_t rows, int64_t columns);

// Requires f32 or f64, the same of all; the first tensor must be among the inputs.
void require_matrices(const RoutineCall& call, size_t inputs, size_t outputs);

// Calls work(index) for each matrix, over the threads of the call; `elements` of one decide how many are
// worth a thread. std::bad_alloc if there was no memory for one.
template <typename Work>
void for_each_matrix(const RoutineCall& call, int64_t count, int64_t elements, const Work& work) {
  std::atomic<bool> lacks_memory = false;
  auto some = [&](int64_t begin, int64_t end, int) {
    try {
      for (int64_t i = begin; i < end; ++i) work(i);
    } catch (const std::bad_alloc&) {  // a task of the pool must not throw
      lacks_memory = true;
    }
  };
  constexpr int64_t kGrainElements = 1024;
  if (call.pool == nullptr) {
    some(0, count, 0);
  } else {
    call.pool->parallel_for(count, std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, elements)),
                            some);
  }
  if (lacks_memory) throw std::bad_alloc();
}

}  // namespace ingot::core::routines
