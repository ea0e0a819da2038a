// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/row_functions.h"

#include <fmt/format.h>

namespace ingot::core::cpu {

RowFunctions::RowFunctions(Code& code, llvm::FunctionType* type, const std::string& name,
                           std::vector<int> counts, const Emit& emit)
    : counts_(std::move(counts)) {
  for (const int rows : counts_) {
    llvm::Function* function = create_function(code, type, fmt::format(fmt::runtime(name), rows));
    function->addFnAttr(llvm::Attribute::NoInline);
    Builder builder(llvm::BasicBlock::Create(*code.context, "entry", function));
    emit(builder, *function, rows);
    builder.CreateRetVoid();
    functions_.push_back(function);
  }
}

void RowFunctions::call(Builder& builder, llvm::Value* rows,
                        const std::vector<llvm::Value*>& arguments) const {
  std::function<void(size_t)> choose = [&](size_t i) {
    const auto invoke = [&] { builder.CreateCall(functions_[i], arguments); };
    if (i + 1 == counts_.size()) return invoke();
    emit_if(builder, builder.CreateICmpSGT(rows, builder.getInt64(static_cast<uint64_t>(counts_[i + 1]))),
            invoke, [&] { choose(i + 1); });
  };
  choose(0);
}

}  // namespace ingot::core::cpu
