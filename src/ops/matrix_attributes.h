// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace ingot::core::ops
