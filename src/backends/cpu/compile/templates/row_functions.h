// SPDX-License-Identifier: Apache-2.0
// A microkernel for each of several numbers of rows, as functions that are called and not inlined.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/cpu/compile/llvm/code.h"
#include "backends/cpu/compile/llvm/control_flow.h"

namespace ingot::core::cpu {

class RowFunctions {
 public:
  // Writes the body of the function for `rows` rows, up to its return.
  using Emit = std::function<void(Builder& builder, llvm::Function& function, int rows)>;

  // `name`: with {} in place of the rows. `counts`: in decreasing order.
  RowFunctions(Code& code, llvm::FunctionType* type, const std::string& name, std::vector<int> counts,
               const Emit& emit);

  // Calls the function of the least count that is not below `rows`.
  void call(Builder& builder, llvm::Value* rows, const std::vector<llvm::Value*>& arguments) const;

 private:
  std::vector<int> counts_;
  std::vector<llvm::Function*> functions_;
};

}  // namespace ingot::core::cpu
