// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct ReadTriangle {  // cholesky, symmetric_eigen: which triangle is read
  bool upper = false;
  static constexpr auto fields() { return std::tuple{Field{"upper", &ReadTriangle::upper}}; }
};

struct TriangularSolve {  // `unit`: the diagonal counts as ones
  bool upper = false;
  bool unit = false;
  static constexpr auto fields() {
    return std::tuple{Field{"upper", &TriangularSolve::upper}, Field{"unit", &TriangularSolve::unit}};
  }
};

struct SingularValues {  // `full`: u and vh are square
  bool full = false;
  static constexpr auto fields() { return std::tuple{Field{"full", &SingularValues::full}}; }
};

}  // namespace ingot::core::ops
