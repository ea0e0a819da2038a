// SPDX-License-Identifier: Apache-2.0
// Functions of one scalar that every target computes by the same primitive operations. Each is a record in
// the math_*.cpp that holds its expansion, and a line in functions.def.
#pragma once

#include <span>
#include <string_view>

#include "loops/kernel.h"

namespace ingot::core::loops {

struct Function {
  std::string_view name = {};               // in the text of kernels, and so in keys
  double (*evaluate)(double x) = nullptr;   // the definition: the interpreter rounds its result
  Expr (*expand)(const Expr& x) = nullptr;  // of an f32 or f64, without functions
};

namespace functions {
#define FUNCTION(name) extern const Function name;
#include "loops/functions.def"
#undef FUNCTION
}  // namespace functions

Expr call(const Function& function, Expr a);
std::span<const Function* const> all_functions();  // sorted as functions.def is

}  // namespace ingot::core::loops
