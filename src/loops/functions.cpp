// SPDX-License-Identifier: Apache-2.0
#include "loops/functions.h"

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core::loops {

Expr call(const Function& function, Expr a) {
  const DType dtype = a->dtype;
  invariant(is_floating(dtype), fmt::format("{} does not work on {}", function.name, core::name(dtype)));
  return std::make_shared<const ExprNode>(ExprNode{
      .kind = ExprNode::Kind::kFunction, .dtype = dtype, .function = &function, .operands = {std::move(a)}});
}

std::span<const Function* const> all_functions() {
  static constexpr const Function* kFunctions[] = {
#define FUNCTION(name) &functions::name,
#include "loops/functions.def"
#undef FUNCTION
  };
  return kFunctions;
}

}  // namespace ingot::core::loops
