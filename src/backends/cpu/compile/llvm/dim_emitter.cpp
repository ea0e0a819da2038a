// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/dim_emitter.h"

#include "backends/cpu/compile/llvm/slow_arithmetic.h"
#include "support/error.h"

namespace ingot::core::cpu {

namespace {

// Rounds towards minus infinity; plain unsigned code if both operands are known to be non-negative. A size
// may be zero where a condition on sizes has not stopped the run, and must not trap.
llvm::Value* emit_division(Builder& builder, loops::Binary op, llvm::Value* a, llvm::Value* b,
                           DimRange dividends, DimRange divisors) {
  const bool wants_quotient = op == loops::Binary::kFloorDivide;
  if (divisors.min <= 0) return integer_division(builder, op, true, a, b);
  if (dividends.min >= 0) return wants_quotient ? builder.CreateUDiv(a, b) : builder.CreateURem(a, b);
  llvm::Value* quotient = builder.CreateSDiv(a, b);
  llvm::Value* remainder = builder.CreateSRem(a, b);
  llvm::Value* adjust = builder.CreateICmpSLT(remainder, builder.getInt64(0));
  if (wants_quotient) return builder.CreateSub(quotient, builder.CreateZExt(adjust, builder.getInt64Ty()));
  return builder.CreateAdd(remainder, builder.CreateSelect(adjust, b, builder.getInt64(0)));
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
    const auto divided = [&](loops::Binary op) {
      return emit_division(builder, op, value, next, range_of(operands[0], symbols),
                           range_of(operands[i], symbols));
    };
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
        value = divided(loops::Binary::kFloorDivide);
        break;
      case Dim::Kind::kModulo:
        value = divided(loops::Binary::kModulo);
        break;
      case Dim::Kind::kConstant:
      case Dim::Kind::kSymbol:
        break;
    }
  }
  return value;
}

}  // namespace ingot::core::cpu
