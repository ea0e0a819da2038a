// SPDX-License-Identifier: Apache-2.0
// Eigenvalues of symmetric matrices, singular values, and the vectors of both.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "routines/matrices.h"
#include "routines/routine_table.h"

namespace ingot::core {
namespace {

using Matrix = Eigen::MatrixXcd;
using Values = Eigen::VectorXd;
using Eigen::Index;

Tensor part_of(const Matrix& x, bool is_imaginary) {
  const Tensor tensor = make_tensor(DType::kF64, {x.rows(), x.cols()});
  auto* element = reinterpret_cast<double*>(tensor.data.get());
  for (Index i = 0; i < x.rows(); ++i)
    for (Index j = 0; j < x.cols(); ++j) *element++ = is_imaginary ? x(i, j).imag() : x(i, j).real();
  return tensor;
}
Matrix matrix_of(const std::vector<Tensor>& outputs, size_t first, size_t parts) {
  Matrix x(outputs[first].shape[0], outputs[first].shape[1]);
  for (Index i = 0; i < x.rows(); ++i) {
    for (Index j = 0; j < x.cols(); ++j) {
      const auto at = [&](size_t part) {
        return reinterpret_cast<const double*>(outputs[first + part].data.get())[i * x.cols() + j];
      };
      x(i, j) = {at(0), parts == 2 ? at(1) : 0.0};
    }
  }
  return x;
}
Values values_of(const Tensor& tensor) {
  return Eigen::Map<const Values>(reinterpret_cast<const double*>(tensor.data.get()), tensor.elements());
}

std::vector<Tensor> run(const char* routine, const Matrix& x, size_t parts,
                        const std::vector<std::vector<int64_t>>& shapes, const NamedValues& attributes) {
  std::vector<Tensor> inputs, outputs;
  for (size_t part = 0; part < parts; ++part) inputs.push_back(part_of(x, part == 1));
  for (const auto& shape : shapes) outputs.push_back(make_tensor(DType::kF64, shape));
  std::vector<TensorView> from, to;
  for (const Tensor& input : inputs) from.push_back(input.view());
  for (const Tensor& output : outputs) to.push_back(output.view());
  find_routine(routine)->run({.inputs = from, .outputs = to, .attributes = attributes});
  return outputs;
}

struct Found {
  Matrix u, v;
  Values values;
};
Found singular(const Matrix& x, size_t parts, bool full) {
  const int64_t rows = x.rows(), columns = x.cols(), count = std::min(rows, columns);
  std::vector<std::vector<int64_t>> shapes(parts, {rows, full ? rows : count});
  shapes.push_back({count});
  shapes.insert(shapes.end(), parts, {full ? columns : count, columns});
  const auto outputs =
      run(parts == 2 ? "complex_singular_values" : "singular_values", x, parts, shapes, {{"full", full}});
  return {matrix_of(outputs, 0, parts), matrix_of(outputs, parts + 1, parts).adjoint(),
          values_of(outputs[parts])};
}
Values singular_values_alone(const Matrix& x, size_t parts) {
  return values_of(run(parts == 2 ? "complex_singular_values" : "singular_values", x, parts,
                       {{std::min(x.rows(), x.cols())}}, {{"full", false}})[0]);
}
Found symmetric(const Matrix& x, size_t parts, bool upper) {
  const int64_t size = x.rows();
  std::vector<std::vector<int64_t>> shapes(parts + 1, {size, size});
  shapes[0] = {size};
  const auto outputs =
      run(parts == 2 ? "hermitian_eigen" : "symmetric_eigen", x, parts, shapes, {{"upper", upper}});
  return {matrix_of(outputs, 1, parts), {}, values_of(outputs[0])};
}
Values eigenvalues_alone(const Matrix& x, size_t parts, bool upper) {
  return values_of(
      run(parts == 2 ? "hermitian_eigen" : "symmetric_eigen", x, parts, {{x.rows()}}, {{"upper", upper}})[0]);
}

Matrix random_matrix(Index rows, Index columns, size_t parts) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> values(-1, 1);
  Matrix x(rows, columns);
  for (Index j = 0; j < columns; ++j) {
    for (Index i = 0; i < rows; ++i) {
      const double real = values(random);
      x(i, j) = {real, parts == 2 ? values(random) : 0.0};
    }
  }
  return x;
}

// What a matrix may be made of a random one.
struct Kind {
  const char* name;
  std::function<Matrix(const Matrix&)> of;
};
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> every = {
      {"random", [](const Matrix& x) { return x; }},
      {"zero", [](const Matrix& x) { return (x * 0).eval(); }},
      {"equal", [](const Matrix& x) { return Matrix::Ones(x.rows(), x.cols()).eval(); }},
      {"identity", [](const Matrix& x) { return Matrix::Identity(x.rows(), x.cols()).eval(); }},
      {"nilpotent",
       [](const Matrix& x) { return Matrix::Identity(x.rows(), x.cols() + 1).rightCols(x.cols()).eval(); }},
      {"rank 1", [](const Matrix& x) { return (x.col(0) * x.row(0)).eval(); }},
      {"rank 2",
       [](const Matrix& x) {
         const Index rank = std::min<Index>({2, x.rows(), x.cols()});
         return (x.leftCols(rank) * x.topRows(rank)).eval();
       }},
      {"triangle", [](const Matrix& x) { return Matrix(x.triangularView<Eigen::Upper>()); }},
      {"decreasing",
       [](const Matrix& x) {
         return (x * Values::LinSpaced(x.cols(), 0, -40).array().exp().matrix().asDiagonal()).eval();
       }},
      {"increasing",
       [](const Matrix& x) {
         return (x * Values::LinSpaced(x.cols(), -40, 0).array().exp().matrix().asDiagonal()).eval();
       }},
      {"huge", [](const Matrix& x) { return (x * 1e300).eval(); }},
      {"tiny", [](const Matrix& x) { return (x * 1e-300).eval(); }},
      {"denormal", [](const Matrix& x) { return (x * 1e-310).eval(); }},
  };
  return every;
}

// Differences are compared with the largest element, of which squares may overflow.
constexpr double kClose = 1e-14;
double scale_of(const Matrix& x) {
  return std::max(x.cwiseAbs().maxCoeff(), std::numeric_limits<double>::denorm_min());
}
void expect_unitary(const Matrix& x) {
  EXPECT_LT((x.adjoint() * x - Matrix::Identity(x.cols(), x.cols())).cwiseAbs().maxCoeff(),
            kClose * static_cast<double>(x.rows() + 10));
}
void expect_product(const Matrix& u, const Values& values, const Matrix& v, const Matrix& x) {
  const double scale = scale_of(x), bits = 5e-324 / scale;  // what one bit of denormal numbers is worth
  const Matrix product = u * (values / scale).asDiagonal() * v.adjoint();
  EXPECT_LT((product - x / scale).cwiseAbs().maxCoeff(),
            (kClose + bits) * static_cast<double>(10 + x.size()));
}
void expect_near(const Values& values, const Values& others, double scale) {
  EXPECT_LT(((values - others) / scale).cwiseAbs().maxCoeff(),
            (kClose + 5e-324 / scale) * static_cast<double>(10 + values.size()) * 10);
}

class SpectralSizes : public ::testing::TestWithParam<std::pair<int, int>> {};

TEST_P(SpectralSizes, SingularValuesAndVectorsMakeTheMatrix) {
  const auto [rows, columns] = GetParam();
  for (const size_t parts : {1, 2}) {
    for (const Kind& kind : kinds()) {
      SCOPED_TRACE(std::string(kind.name) + (parts == 2 ? ", complex" : ""));
      const Matrix x = kind.of(random_matrix(rows, columns, parts));
      const Index count = std::min(rows, columns);
      const Values alone = singular_values_alone(x, parts);
      for (const bool full : {false, true}) {
        const Found found = singular(x, parts, full);
        expect_unitary(found.u);
        expect_unitary(found.v);
        expect_product(found.u.leftCols(count), found.values, found.v.leftCols(count), x);
        EXPECT_GE(found.values.minCoeff(), 0);
        EXPECT_TRUE(std::is_sorted(found.values.begin(), found.values.end(), std::greater<>()));
        expect_near(found.values, alone, scale_of(x));
      }
    }
  }
}

TEST_P(SpectralSizes, EigenvaluesAndVectorsMakeTheMatrix) {
  const Index size = GetParam().first;
  for (const size_t parts : {1, 2}) {
    for (const Kind& kind : kinds()) {
      SCOPED_TRACE(std::string(kind.name) + (parts == 2 ? ", complex" : ""));
      const Matrix given = kind.of(random_matrix(size, size, parts)), x = given / 2 + given.adjoint() / 2;
      for (const bool upper : {false, true}) {
        // Only this triangle is read.
        Matrix triangle = x;
        triangle.triangularView<Eigen::StrictlyLower>() *= upper ? 0 : 1;
        triangle.triangularView<Eigen::StrictlyUpper>() *= upper ? 1 : 0;
        const Found found = symmetric(triangle, parts, upper);
        expect_unitary(found.u);
        expect_product(found.u, found.values, found.u, x);
        EXPECT_TRUE(std::is_sorted(found.values.begin(), found.values.end()));
        expect_near(found.values, eigenvalues_alone(triangle, parts, upper), scale_of(x));
      }
    }
  }
}

// About the rows and columns of kernels and of blocks of reflections.
INSTANTIATE_TEST_SUITE_P(All, SpectralSizes,
                         ::testing::Values(std::pair{1, 1}, std::pair{2, 2}, std::pair{3, 3}, std::pair{1, 6},
                                           std::pair{6, 1}, std::pair{5, 3}, std::pair{7, 7}, std::pair{8, 8},
                                           std::pair{9, 9}, std::pair{9, 20}, std::pair{31, 16},
                                           std::pair{33, 33}, std::pair{16, 41}, std::pair{64, 64},
                                           std::pair{70, 67}),
                         [](const auto& info) {
                           return std::to_string(info.param.first) + "x" + std::to_string(info.param.second);
                         });

TEST(Spectral, ClusteredValuesKeepOrthogonalVectors) {
  constexpr Index kSize = 40;
  const Eigen::MatrixXd q =
      Eigen::HouseholderQR<Eigen::MatrixXd>(random_matrix(kSize, kSize, 1).real()).householderQ();
  Values values = Values::Ones(kSize);
  values.head(5).setConstant(1 + 1e-15);
  values.tail(20).setConstant(-3);
  const Matrix x = (q * values.asDiagonal() * q.transpose()).cast<std::complex<double>>();
  const Found eigen = symmetric(x, 1, false), singular_ones = singular(x, 1, false);
  expect_unitary(eigen.u);
  expect_unitary(singular_ones.u);
  expect_unitary(singular_ones.v);
  EXPECT_NEAR(eigen.values(0), -3, 1e-13);
  EXPECT_NEAR(singular_ones.values(19), 3, 1e-13);
  EXPECT_NEAR(singular_ones.values(20), 1, 1e-13);
}

// Found by the sizes of bidiagonal elements alone, a small value keeps its digits.
TEST(Spectral, SmallSingularValuesOfDiagonalsAreExact) {
  Matrix x = Matrix::Zero(6, 6);
  const Values values = (Values(6) << 1, 1e-3, 1e-30, 1e-90, 1e-150, 0).finished();
  x.diagonal() = values.cast<std::complex<double>>();
  const Values found = singular_values_alone(x, 1);
  for (Index i = 0; i < 6; ++i) EXPECT_NEAR(found(i), values(i), values(i) * 1e-14);
}

TEST(Spectral, MatricesThatAreNotFiniteHaveNone) {
  for (const double element :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Matrix x = random_matrix(9, 9, 1);
    x(7, 2) = element;
    EXPECT_TRUE(singular(x, 1, true).values.array().isNaN().all());
    EXPECT_TRUE(symmetric(x, 1, false).values.array().isNaN().all());
    EXPECT_TRUE(symmetric(x, 1, false).u.real().array().isNaN().all());
    EXPECT_FALSE(symmetric(x, 1, true).values.array().isNaN().any());
  }
}

}  // namespace
}  // namespace ingot::core
