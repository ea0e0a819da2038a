// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/slow_arithmetic.h"

#include <cmath>
#include <limits>

#include <llvm/IR/MDBuilder.h>

#include "backends/cpu/compile/llvm/elements.h"

namespace ingot::core::cpu {
namespace {

using Values = std::vector<llvm::Value*>;

llvm::Value* any(Builder& builder, llvm::Value* mask) {
  return mask->getType()->isVectorTy() ? builder.CreateOrReduce(mask) : mask;
}

// Repeats `turn` on the values while any lane is `active`.
Values repeat_while(Builder& builder, const Values& initial,
                    const std::function<llvm::Value*(const Values&)>& active,
                    const std::function<Values(const Values&)>& turn) {
  auto* before = builder.GetInsertBlock();
  auto* test = llvm::BasicBlock::Create(builder.getContext(), "while", before->getParent());
  auto* body = llvm::BasicBlock::Create(builder.getContext(), "turn", before->getParent());
  auto* after = llvm::BasicBlock::Create(builder.getContext(), "done", before->getParent());
  builder.CreateBr(test);
  builder.SetInsertPoint(test);
  Values values;
  for (llvm::Value* value : initial) {
    auto* phi = builder.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, before);
    values.push_back(phi);
  }
  builder.CreateCondBr(any(builder, active(values)), body, after);
  builder.SetInsertPoint(body);
  const Values next = turn(values);
  for (size_t i = 0; i < values.size(); ++i)
    llvm::cast<llvm::PHINode>(values[i])->addIncoming(next[i], builder.GetInsertBlock());
  builder.CreateBr(test);
  builder.SetInsertPoint(after);
  return values;
}

llvm::Type* with_element(llvm::Type* like, llvm::Type* element) {
  auto* vector = llvm::dyn_cast<llvm::VectorType>(like);
  return vector == nullptr ? element : llvm::VectorType::get(element, vector->getElementCount());
}

// A correctly rounded quotient leaves an exactly representable remainder, so each iteration is exact and
// removes 53 bits of the quotient. A quotient that was rounded up leaves a negative remainder: its magnitude
// is divided further, and `negative` records its sign.
llvm::Value* remainder_of_doubles(Builder& builder, llvm::Value* a, llvm::Value* b) {
  llvm::Type* type = a->getType();
  const auto number = [&](double value) { return llvm::ConstantFP::get(type, value); };
  llvm::Value* infinity = number(std::numeric_limits<double>::infinity());
  llvm::Value* dividend = builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
  llvm::Value* divisor = builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, b);
  llvm::Value* valid =
      builder.CreateAnd(builder.CreateFCmpOLT(dividend, infinity), builder.CreateFCmpOGT(divisor, number(0)));
  const auto active = [&](const Values& values) {
    return builder.CreateAnd(valid, builder.CreateFCmpOGE(values[0], divisor));
  };
  const auto turn = [&](const Values& values) -> Values {
    llvm::Value* running = active(values);
    llvm::Value* scaled = divisor;
    for (int i = 0; i < 2; ++i) {  // a multiple of the divisor with a finite quotient
      llvm::Value* huge = builder.CreateFCmpOEQ(builder.CreateFDiv(values[0], scaled), infinity);
      scaled = choose(builder, huge, builder.CreateFMul(scaled, number(std::ldexp(1.0, 1000))), scaled);
    }
    llvm::Value* quotient =
        builder.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, builder.CreateFDiv(values[0], scaled));
    llvm::Value* rest = builder.CreateIntrinsic(llvm::Intrinsic::fma, {type},
                                                {builder.CreateFNeg(quotient), scaled, values[0]});
    llvm::Value* flips = builder.CreateAnd(running, builder.CreateFCmpOLT(rest, number(0)));
    llvm::Value* magnitude = builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, rest);
    return {choose(builder, running, magnitude, values[0]), builder.CreateXor(values[1], flips)};
  };
  llvm::Value* no = llvm::Constant::getNullValue(valid->getType());
  const Values ended = repeat_while(builder, {dividend, no}, active, turn);
  llvm::Value* upwards = builder.CreateAnd(ended[1], builder.CreateFCmpOGT(ended[0], number(0)));
  llvm::Value* rest = choose(builder, upwards, builder.CreateFSub(divisor, ended[0]), ended[0]);
  rest = builder.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, rest, a);
  return choose(builder, valid, rest, number(std::numeric_limits<double>::quiet_NaN()));
}

llvm::Value* remainder_by_doubles(Builder& builder, llvm::Value* a, llvm::Value* b) {
  llvm::Type* type = a->getType();
  if (type->getScalarType()->isDoubleTy()) return remainder_of_doubles(builder, a, b);
  llvm::Type* wide = with_element(type, builder.getDoubleTy());
  return builder.CreateFPTrunc(
      remainder_of_doubles(builder, builder.CreateFPExt(a, wide), builder.CreateFPExt(b, wide)), type);
}

}  // namespace

llvm::Value* branch_rarely(Builder& builder, llvm::Value* condition, llvm::Value* usual, int lanes,
                           const std::function<llvm::Value*()>& rare) {
  llvm::Value* chosen = nullptr;
  if (condition->getType()->isVectorTy()) usual = broadcast(builder, usual, lanes);
  const bool is_vector = usual->getType()->isVectorTy();
  llvm::BasicBlock *before = builder.GetInsertBlock(), *inside = nullptr;
  emit_if(builder, any(builder, condition), [&] {
    llvm::Value* value = rare();
    chosen = choose(builder, condition, is_vector ? broadcast(builder, value, lanes) : value, usual);
    inside = builder.GetInsertBlock();
  });
  before->getTerminator()->setMetadata(llvm::LLVMContext::MD_prof,
                                       llvm::MDBuilder(builder.getContext()).createUnlikelyBranchWeights());
  llvm::PHINode* result = builder.CreatePHI(usual->getType(), 2);
  result->addIncoming(usual, before);
  result->addIncoming(chosen, inside);
  return result;
}

// A quotient with no more bits than the type has is at most 1 too large, and then the remainder is negative;
// both remainders are exact.
llvm::Value* floating_remainder(Builder& builder, llvm::Value* a, llvm::Value* b) {
  llvm::Type* type = a->getType();
  const auto number = [&](double value) { return llvm::ConstantFP::get(type, value); };
  llvm::Value* divisor = builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, b);
  llvm::Value* dividend = builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
  llvm::Value* quotient = builder.CreateFDiv(dividend, divisor);
  const int bits = type->getScalarType()->getFPMantissaWidth() - 1;
  llvm::Value* is_small = builder.CreateFCmpOLT(quotient, number(std::ldexp(1.0, bits)));
  llvm::Value* is_finite = builder.CreateFCmpOLT(divisor, number(std::numeric_limits<double>::infinity()));
  quotient = builder.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, quotient);
  llvm::Value* rest = builder.CreateIntrinsic(llvm::Intrinsic::fma, {type},
                                              {builder.CreateFNeg(quotient), divisor, dividend});
  rest = choose(builder, builder.CreateFCmpOLT(rest, number(0)), builder.CreateFAdd(rest, divisor), rest);
  rest = builder.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, rest, a);
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  const int lanes = vector == nullptr ? 1 : static_cast<int>(vector->getNumElements());
  return branch_rarely(builder, builder.CreateNot(builder.CreateAnd(is_small, is_finite)), rest, lanes,
                       [&] { return remainder_by_doubles(builder, a, b); });
}

llvm::Value* integer_division(Builder& builder, loops::Binary op, bool is_signed, llvm::Value* a,
                              llvm::Value* b) {
  llvm::Type* type = a->getType();
  llvm::Value* zero = llvm::ConstantInt::get(type, 0);
  llvm::Value* one = llvm::ConstantInt::get(type, 1);
  llvm::Value* by_zero = builder.CreateICmpEQ(b, zero);
  // x / -1 is computed as -(x / 1), which wraps.
  llvm::Value* by_minus_one =
      is_signed ? builder.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type)) : nullptr;
  llvm::Value* unsafe = is_signed ? builder.CreateOr(by_zero, by_minus_one) : by_zero;
  llvm::Value* divisor = builder.CreateSelect(unsafe, one, b);
  llvm::Value* quotient = is_signed ? builder.CreateSDiv(a, divisor) : builder.CreateUDiv(a, divisor);
  llvm::Value* rest = builder.CreateSub(a, builder.CreateMul(quotient, divisor));
  if (is_signed) quotient = builder.CreateSelect(by_minus_one, builder.CreateNeg(quotient), quotient);
  if (is_signed && (op == loops::Binary::kFloorDivide || op == loops::Binary::kModulo)) {
    llvm::Value* differ = builder.CreateICmpSLT(builder.CreateXor(rest, b), zero);
    llvm::Value* away = builder.CreateAnd(builder.CreateICmpNE(rest, zero), differ);
    quotient = builder.CreateAdd(quotient, builder.CreateSExt(away, type));
    rest = builder.CreateSelect(away, builder.CreateAdd(rest, b), rest);
  }
  const bool wants_quotient = op == loops::Binary::kDivide || op == loops::Binary::kFloorDivide;
  return builder.CreateSelect(by_zero, zero, wants_quotient ? quotient : rest);
}

llvm::Value* integer_power(Builder& builder, bool is_signed, llvm::Value* base, llvm::Value* exponent) {
  llvm::Type* type = base->getType();
  llvm::Value* zero = llvm::ConstantInt::get(type, 0);
  llvm::Value* one = llvm::ConstantInt::get(type, 1);
  const auto active = [&](const Values& values) { return builder.CreateICmpNE(values[2], zero); };
  const auto turn = [&](const Values& values) -> Values {
    llvm::Value* odd = builder.CreateICmpNE(builder.CreateAnd(values[2], one), zero);
    return {builder.CreateSelect(odd, builder.CreateMul(values[0], values[1]), values[0]),
            builder.CreateMul(values[1], values[1]), builder.CreateLShr(values[2], one)};
  };
  llvm::Value* power = repeat_while(builder, {one, base, exponent}, active, turn)[0];
  if (!is_signed) return power;
  // A negative exponent is interpreted as its bits: the lowest bit is right for -1, and any is for 1.
  llvm::Value* magnitude = builder.CreateBinaryIntrinsic(llvm::Intrinsic::abs, base, builder.getFalse());
  llvm::Value* vanishes =
      builder.CreateAnd(builder.CreateICmpSLT(exponent, zero), builder.CreateICmpNE(magnitude, one));
  return builder.CreateSelect(vanishes, zero, power);
}

}  // namespace ingot::core::cpu
