// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ir/attribute.h"

namespace ingot::core::ops {

struct SpecialFunction {  // a name of routines/special_function.cpp
  std::string function;
  static constexpr auto fields() { return std::tuple{Field{"function", &SpecialFunction::function}}; }
};

}  // namespace ingot::core::ops
