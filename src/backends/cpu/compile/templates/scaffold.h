// SPDX-License-Identifier: Apache-2.0
// The prologue and loop that all kernel templates share.
#pragma once

#include "backends/cpu/compile/llvm/code.h"
#include "backends/cpu/compile/llvm/dim_emitter.h"
#include "loops/kernel.h"
#include "support/cpu_features.h"

namespace ingot::core::cpu {

// A kernel under construction. `symbols` must outlive it.
struct Scaffold {
  Scaffold(CpuFeatures features, const std::string& name, const SymbolTable& symbols);

  // Loads the pointers of the first `count` buffers and the values of the symbol arguments.
  void load_arguments(size_t count, const std::vector<std::string>& arguments);
  Image finish();  // returns kOk

  llvm::Value* number(int64_t value) { return builder.getInt64(static_cast<uint64_t>(value)); }
  llvm::Value* plus(llvm::Value* a, int64_t b) { return builder.CreateNSWAdd(a, number(b)); }
  llvm::Value* times(llvm::Value* a, int64_t b) { return builder.CreateNSWMul(a, number(b)); }
  llvm::Value* smaller(llvm::Value* a, llvm::Value* b) {
    return builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
  }
  llvm::Value* larger(llvm::Value* a, llvm::Value* b) {
    return builder.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
  }
  llvm::Value* ceil_divide(llvm::Value* a, llvm::Value* b) {
    return builder.CreateUDiv(builder.CreateNSWAdd(a, plus(b, -1)), b);
  }
  llvm::Value* ceil_divide(llvm::Value* a, int64_t b) { return ceil_divide(a, number(b)); }
  llvm::Value* byte_at(llvm::Value* pointer, llvm::Value* offset) {
    return builder.CreateGEP(builder.getInt8Ty(), pointer, offset);
  }
  llvm::Value* float_at(llvm::Value* pointer, llvm::Value* index) {
    return builder.CreateGEP(builder.getFloatTy(), pointer, index);
  }
  llvm::Value* scratch(int64_t bytes) {  // `bytes` after its start
    return builder.CreateConstGEP1_64(builder.getInt8Ty(), entry->getArg(4), static_cast<uint64_t>(bytes));
  }
  // Calls `body` for each item of this call's part.
  void for_each_item(const std::function<void(llvm::Value* item)>& body) {
    emit_loop(builder, entry->getArg(2), entry->getArg(3), 1, body);
  }

  Code code;
  llvm::Function* entry;
  Builder builder;
  DimEmitter dims;
  std::vector<llvm::Value*> buffers;
};

// Symbols of the epilogue, of the operands' types and of `others`, sorted: the symbol arguments of the
// kernel.
std::vector<std::string> symbol_arguments(const loops::Kernel& epilogue, std::span<const TensorType> operands,
                                          std::span<const Dim> others);

// The part of a key that every template has: the types of its operands, what follows its sums, and the ranges
// of the symbols, which decide how dims are divided. Neither the processor nor options are in it.
std::string describe_problem(std::span<const TensorType> operands, const loops::Kernel& epilogue,
                             std::span<const std::string> arguments, const SymbolTable& symbols);

inline int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline int64_t round_up(int64_t value, int64_t multiple) { return ceil_divide(value, multiple) * multiple; }

}  // namespace ingot::core::cpu
