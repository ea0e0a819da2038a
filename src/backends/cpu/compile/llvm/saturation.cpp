// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/saturation.h"

#include <llvm/IR/PatternMatch.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ingot::core::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Where a value lies, as far as the code that computes it says so.
struct Reach {
  double low = -kInfinity, high = kInfinity;
  bool may_be_nan = true;
};

llvm::IntrinsicInst* as_intrinsic(llvm::Value* value, llvm::Intrinsic::ID id) {
  auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(value);
  return call != nullptr && call->getIntrinsicID() == id ? call : nullptr;
}

Reach reach_of(llvm::Value* value);

// The larger or the smaller of two, of which the second is a constant: NaN stays, or becomes the constant.
Reach reach_of_choice(llvm::SelectInst& choice) {
  const auto* compare = llvm::dyn_cast<llvm::FCmpInst>(choice.getCondition());
  const llvm::APFloat* limit = nullptr;
  if (compare == nullptr || compare->getOperand(0) != choice.getTrueValue() ||
      compare->getOperand(1) != choice.getFalseValue() ||
      !llvm::PatternMatch::match(choice.getFalseValue(), llvm::PatternMatch::m_APFloat(limit)) ||
      limit->isNaN())
    return {};
  const auto predicate = compare->getPredicate();
  const auto ordered = llvm::CmpInst::getOrderedPredicate(predicate);
  if (ordered != llvm::CmpInst::FCMP_OGT && ordered != llvm::CmpInst::FCMP_OLT) return {};
  const Reach reach = reach_of(choice.getTrueValue());
  const double number = limit->convertToDouble();
  const bool may_be_nan = reach.may_be_nan && llvm::CmpInst::isUnordered(predicate);
  if (ordered == llvm::CmpInst::FCMP_OGT) return {number, std::max(reach.high, number), may_be_nan};
  return {std::min(reach.low, number), number, may_be_nan};
}

Reach reach_of(llvm::Value* value) {
  if (const auto* fence = as_intrinsic(value, llvm::Intrinsic::arithmetic_fence))
    return reach_of(fence->getArgOperand(0));
  if (const auto* rounded = as_intrinsic(value, llvm::Intrinsic::roundeven)) {
    const Reach reach = reach_of(rounded->getArgOperand(0));
    return {std::floor(reach.low), std::ceil(reach.high), reach.may_be_nan};
  }
  auto* choice = llvm::dyn_cast<llvm::SelectInst>(value);
  return choice == nullptr ? Reach{} : reach_of_choice(*choice);
}

bool is_x86(Builder& builder) {
  return llvm::Triple(builder.GetInsertBlock()->getModule()->getTargetTriple()).isX86();
}

// x86 rounds to even as it converts.
llvm::Value* converted_whole(Builder& builder, llvm::Value* value, llvm::Type* type, bool is_signed) {
  const auto* rounded = as_intrinsic(value, llvm::Intrinsic::roundeven);
  const bool is_single =
      value->getType()->getScalarType()->isFloatTy() && type->getScalarSizeInBits() == 32 && is_signed;
  if (rounded != nullptr && is_single && is_x86(builder))
    return builder.CreateIntrinsic(llvm::Intrinsic::lrint, {type, value->getType()},
                                   {rounded->getArgOperand(0)});
  return is_signed ? builder.CreateFPToSI(value, type) : builder.CreateFPToUI(value, type);
}

}  // namespace

// LLVM's own saturating conversion of a vector is one of each element.
llvm::Value* saturated(Builder& builder, llvm::Value* value, llvm::Type* type, bool is_signed) {
  const unsigned bits = type->getScalarSizeInBits();
  const double least = is_signed ? -std::ldexp(1.0, static_cast<int>(bits) - 1) : 0;
  const double beyond = std::ldexp(1.0, static_cast<int>(is_signed ? bits - 1 : bits));
  const Reach reach = reach_of(value);
  if (!reach.may_be_nan && reach.low >= least && reach.high < beyond)
    return converted_whole(builder, value, type, is_signed);
  if (!type->isVectorTy()) {
    const auto id = is_signed ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return builder.CreateIntrinsic(id, {type, value->getType()}, {value});
  }
  const auto ends = [&](const llvm::APInt& end) { return llvm::ConstantInt::get(type, end); };
  llvm::Constant* zero = llvm::ConstantFP::get(value->getType(), 0);
  llvm::Value* is_low = builder.CreateFCmpOLT(value, llvm::ConstantFP::get(value->getType(), least));
  llvm::Value* is_high = builder.CreateFCmpOGE(value, llvm::ConstantFP::get(value->getType(), beyond));
  llvm::Value* outside =
      builder.CreateOr(builder.CreateFCmpUNO(value, value), builder.CreateOr(is_low, is_high));
  llvm::Value* inside = builder.CreateSelect(outside, zero, value);
  llvm::Value* whole = is_signed ? builder.CreateFPToSI(inside, type) : builder.CreateFPToUI(inside, type);
  const llvm::APInt smallest = is_signed ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt(bits, 0);
  const llvm::APInt largest =
      is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
  return builder.CreateSelect(is_high, ends(largest), builder.CreateSelect(is_low, ends(smallest), whole));
}

}  // namespace ingot::core::cpu
