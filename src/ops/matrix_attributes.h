// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ir/attribute.h"

namespace ingot::core::ops {

struct Cholesky {  // `upper`: the triangle that is read, and the factor
  bool upper = false;
  static constexpr auto fields() { return std::tuple{Field{"upper", &Cholesky::upper}}; }
};

struct SymmetricEigen {  // `upper`: the triangle that is read; without `vectors` there are values only
  bool upper = false;
  bool vectors = true;
  static constexpr auto fields() {
    return std::tuple{Field{"upper", &SymmetricEigen::upper}, Field{"vectors", &SymmetricEigen::vectors}};
  }
};

struct Eigen {  // without `vectors` there are values only
  bool vectors = true;
  static constexpr auto fields() { return std::tuple{Field{"vectors", &Eigen::vectors}}; }
};

struct TriangularSolve {  // `unit`: the diagonal counts as ones
  bool upper = false;
  bool unit = false;
  static constexpr auto fields() {
    return std::tuple{Field{"upper", &TriangularSolve::upper}, Field{"unit", &TriangularSolve::unit}};
  }
};

struct SingularValues {  // `full`: u and vh are square; without `vectors` there is s only
  bool full = false;
  bool vectors = true;
  static constexpr auto fields() {
    return std::tuple{Field{"full", &SingularValues::full}, Field{"vectors", &SingularValues::vectors}};
  }
};

struct Ldl {  // `hermitian`: d is real on its diagonal, and the other triangle is conjugate
  bool hermitian = true;
  static constexpr auto fields() { return std::tuple{Field{"hermitian", &Ldl::hermitian}}; }
};

struct LeastSquares {  // `driver`: gels, gelsy, gelsd or gelss; without `has_rcond` rcond follows from the
                       // sizes
  std::string driver = "gelsy";
  bool has_rcond = false;
  double rcond = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"driver", &LeastSquares::driver}, Field{"has_rcond", &LeastSquares::has_rcond},
                      Field{"rcond", &LeastSquares::rcond}};
  }
};

}  // namespace ingot::core::ops
