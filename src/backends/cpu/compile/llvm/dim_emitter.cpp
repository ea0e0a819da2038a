// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/dim_emitter.h"

#include "support/error.h"

namespace ingot::core::cpu {

namespace {

// Rounds towards minus infinity; plain unsigned code if both operands are known to be non-negative.
std::pair<llvm::Value*, llvm::Value*> emit_division(Builder& builder, llvm::Value* a, llvm::Value* b,
                                                    bool unsigned_) {
  if (unsigned_) return {builder.CreateUDiv(a, b), builder.CreateURem(a, b)};
  llvm::Value* quotient = builder.CreateSDiv(a, b);
  llvm::Value* remainder = builder.CreateSRem(a, b);
  llvm::Value* zero = builder.getInt64(0);
  llvm::Value* signs_differ = builder.CreateICmpSLT(builder.CreateXor(remainder, b), zero);
  llvm::Value* inexact = builder.CreateICmpNE(remainder, zero);
  llvm::Value* adjust = builder.CreateAnd(signs_differ, inexact);
  return {builder.CreateSub(quotient, builder.CreateZExt(adjust, builder.getInt64Ty())),
          builder.CreateAdd(remainder, builder.CreateSelect(adjust, b, zero))};
}

}  // namespace

llvm::Value* DimEmitter::emit(const Dim& dim) const {
  if (auto constant = dim.constant()) return builder.getInt64(*constant);
  if (dim.kind() == Dim::Kind::kSymbol) {
    auto found = values.find(dim.symbol_name());
    invariant(found != values.end(), "a dim uses the unbound symbol " + dim.symbol_name());
    return found->second;
  }
  auto operands = dim.operands();
  llvm::Value* value = emit(operands[0]);
  for (size_t i = 1; i < operands.size(); ++i) {
    llvm::Value* next = emit(operands[i]);
    bool positive = range_of(operands[0], symbols).min >= 0 && range_of(operands[i], symbols).min > 0;
    switch (dim.kind()) {
      case Dim::Kind::kAdd:
        value = builder.CreateNSWAdd(value, next);
        break;
      case Dim::Kind::kMultiply:
        value = builder.CreateNSWMul(value, next);
        break;
      case Dim::Kind::kMaximum:
        value = builder.CreateBinaryIntrinsic(llvm::Intrinsic::smax, value, next);
        break;
      case Dim::Kind::kMinimum:
        value = builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, value, next);
        break;
      case Dim::Kind::kFloorDivide:
        value = emit_division(builder, value, next, positive).first;
        break;
      case Dim::Kind::kModulo:
        value = emit_division(builder, value, next, positive).second;
        break;
      case Dim::Kind::kConstant:
      case Dim::Kind::kSymbol:
        break;
    }
  }
  return value;
}

}  // namespace ingot::core::cpu
