// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/expression_emitter.h"

#include <llvm/IR/PatternMatch.h>

#include "backends/cpu/compile/llvm/packed_bytes.h"
#include "backends/cpu/compile/llvm/saturation.h"
#include "backends/cpu/compile/llvm/slow_arithmetic.h"
#include "loops/rarely.h"
#include "support/error.h"

namespace ingot::core::cpu {

using loops::Binary;
using loops::Expr;
using loops::Unary;

namespace {

bool is_number(llvm::Value* value) {
  llvm::APFloat const* constant = nullptr;
  return llvm::PatternMatch::match(value, llvm::PatternMatch::m_APFloat(constant)) && !constant->isNaN();
}

// `a` if it is beyond `b`, otherwise `b`; NaN if either is. x86's maximum and minimum return their second
// operand for NaN: one instruction if `a` cannot be NaN, otherwise three.
llvm::Value* extremum(Builder& builder, llvm::CmpInst::Predicate beyond, llvm::Value* a, llvm::Value* b) {
  if (is_number(b)) {
    const auto beyond_or_nan = llvm::CmpInst::getUnorderedPredicate(beyond);
    return choose(builder, builder.CreateFCmp(beyond_or_nan, a, b), a, b);
  }
  llvm::Value* chosen = choose(builder, builder.CreateFCmp(beyond, a, b), a, b);
  return is_number(a) ? chosen : choose(builder, builder.CreateFCmpUNO(a, a), a, chosen);
}

}  // namespace

bool ExpressionEmitter::is_guarded(const Expr& expression) {
  if (const auto found = guarded_.find(expression.get()); found != guarded_.end()) return found->second;
  bool guarded = expression->kind == Node::Kind::kLoad && source_.needs_guard(*expression);
  for (const Expr& operand : expression->operands) guarded = is_guarded(operand) || guarded;
  return guarded_[expression.get()] = guarded;
}

// Reuses what was emitted under the same guard or a wider one: without it, the loads of nested choices, and
// all that depends on them, would be emitted for each arm.
llvm::Value* ExpressionEmitter::emit(const Expr& expression, llvm::Value* guard) {
  if (!is_guarded(expression)) guard = nullptr;
  for (llvm::Value* known = guard;; known = wider_[known]) {
    if (const auto found = done_.find({expression.get(), known}); found != done_.end()) return found->second;
    if (known == nullptr) break;
  }
  llvm::Value* value = compute(*expression, guard);
  return done_[{expression.get(), guard}] = value;
}

llvm::Value* ExpressionEmitter::compute(const Node& node, llvm::Value* guard) {
  const auto operand = [&](size_t i) { return emit(node.operands[i], guard); };
  switch (node.kind) {
    case Node::Kind::kConstant:
      return constant_value(builder_, node.dtype, node.number, node.integer);
    case Node::Kind::kIndex:
      return source_.index(node.index[0]);
    case Node::Kind::kLoad:
      return source_.load(node, guard);
    case Node::Kind::kLocal:
      return source_.local(node);
    case Node::Kind::kUnary:
      return emit_unary(node, operand(0));
    case Node::Kind::kFunction:
      throw InternalError("a function was not expanded before code is emitted");
    case Node::Kind::kBinary: {
      llvm::Value* a = operand(0);
      return combine(node.binary, node.operands[0]->dtype, a, operand(1));
    }
    case Node::Kind::kSelect:
      return emit_select(node, guard);
    case Node::Kind::kConvert:
      return emit_convert(node.operands[0]->dtype, node.dtype, operand(0));
    case Node::Kind::kBitcast: {
      llvm::Value* value = operand(0);
      const int lanes = value->getType()->isVectorTy() ? lanes_ : 1;
      return builder_.CreateBitCast(value, arithmetic_type(builder_, node.dtype, lanes));
    }
    case Node::Kind::kFma: {
      llvm::Value* operands[] = {operand(0), operand(1), operand(2)};
      bool vector = false;
      for (llvm::Value* value : operands) vector = vector || value->getType()->isVectorTy();
      for (llvm::Value*& value : operands) value = vector ? broadcast(builder_, value, lanes_) : value;
      return builder_.CreateIntrinsic(llvm::Intrinsic::fma, {operands[0]->getType()}, operands);
    }
  }
  throw InternalError("unknown kind of expression");
}

llvm::Value* ExpressionEmitter::emit_unary(const Node& node, llvm::Value* a) {
  const bool floating = is_floating(node.dtype);
  const auto intrinsic = [&](llvm::Intrinsic::ID id) { return builder_.CreateUnaryIntrinsic(id, a); };
  switch (node.unary) {
    case Unary::kNegate:
      return floating ? builder_.CreateFNeg(a) : builder_.CreateNeg(a);
    case Unary::kAbsolute:
      if (floating) return intrinsic(llvm::Intrinsic::fabs);
      return is_signed(node.dtype)
                 ? builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, builder_.getFalse())
                 : a;
    case Unary::kNot:
      return builder_.CreateNot(a);
    case Unary::kSquareRoot:
      return intrinsic(llvm::Intrinsic::sqrt);
    case Unary::kFloor:
      return intrinsic(llvm::Intrinsic::floor);
    case Unary::kCeil:
      return intrinsic(llvm::Intrinsic::ceil);
    case Unary::kTruncate:
      return intrinsic(llvm::Intrinsic::trunc);
    case Unary::kRoundEven:
      return intrinsic(llvm::Intrinsic::roundeven);
  }
  throw InternalError("unknown unary operation");
}

llvm::Value* ExpressionEmitter::combine(Binary op, DType dtype, llvm::Value* a, llvm::Value* b) {
  if (a->getType()->isVectorTy() || b->getType()->isVectorTy()) {
    a = broadcast(builder_, a, lanes_);
    b = broadcast(builder_, b, lanes_);
  }
  if (op >= Binary::kEqual) return emit_comparison(op, dtype, a, b);
  if (is_floating(dtype)) return emit_floating(op, a, b);
  return emit_integer(op, dtype != DType::kBool && is_signed(dtype), a, b);
}

llvm::Value* ExpressionEmitter::emit_floating(Binary op, llvm::Value* a, llvm::Value* b) {
  llvm::Value* zero = llvm::ConstantFP::get(a->getType(), 0);
  const auto signs_differ = [&](llvm::Value* remainder) {
    llvm::Value* differ =
        builder_.CreateXor(builder_.CreateFCmpOLT(b, zero), builder_.CreateFCmpOLT(remainder, zero));
    return builder_.CreateAnd(builder_.CreateFCmpUNE(remainder, zero), differ);
  };
  switch (op) {
    case Binary::kAdd:
      return builder_.CreateFAdd(a, b);
    case Binary::kSubtract:
      return builder_.CreateFSub(a, b);
    case Binary::kMultiply:
      return builder_.CreateFMul(a, b);
    case Binary::kDivide:
      return builder_.CreateFDiv(a, b);
    case Binary::kMaximum:
      return extremum(builder_, llvm::CmpInst::FCMP_OGT, a, b);
    case Binary::kMinimum:
      return extremum(builder_, llvm::CmpInst::FCMP_OLT, a, b);
    case Binary::kRemainder:
      return floating_remainder(builder_, a, b);
    case Binary::kModulo: {
      llvm::Value* remainder = floating_remainder(builder_, a, b);
      return choose(builder_, signs_differ(remainder), builder_.CreateFAdd(remainder, b), remainder);
    }
    case Binary::kFloorDivide: {  // as in torch: loops::apply has the steps
      llvm::Value* remainder = floating_remainder(builder_, a, b);
      llvm::Value* quotient = builder_.CreateFDiv(builder_.CreateFSub(a, remainder), b);
      llvm::Value* plain = builder_.CreateFDiv(a, b);
      llvm::Value* one = llvm::ConstantFP::get(a->getType(), 1);
      quotient = choose(builder_, signs_differ(remainder), builder_.CreateFSub(quotient, one), quotient);
      llvm::Value* floored = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, quotient);
      llvm::Value* far = builder_.CreateFCmpOGT(builder_.CreateFSub(quotient, floored),
                                                llvm::ConstantFP::get(a->getType(), 0.5));
      llvm::Value* result = choose(builder_, far, builder_.CreateFAdd(floored, one), floored);
      llvm::Value* signed_zero = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, zero, plain);
      result = choose(builder_, builder_.CreateFCmpOEQ(quotient, zero), signed_zero, result);
      return choose(builder_, builder_.CreateFCmpOEQ(b, zero), plain, result);
    }
    default:
      throw InternalError("an operation was not expanded before code is emitted");
  }
}

llvm::Value* ExpressionEmitter::emit_integer(Binary op, bool is_signed, llvm::Value* a, llvm::Value* b) {
  const auto extremum = [&](llvm::Intrinsic::ID with_sign, llvm::Intrinsic::ID without) {
    return builder_.CreateBinaryIntrinsic(is_signed ? with_sign : without, a, b);
  };
  switch (op) {
    case Binary::kAdd:
      return builder_.CreateAdd(a, b);
    case Binary::kSubtract:
      return builder_.CreateSub(a, b);
    case Binary::kMultiply:
      return builder_.CreateMul(a, b);
    case Binary::kDivide:
    case Binary::kFloorDivide:
    case Binary::kModulo:
    case Binary::kRemainder:
      return integer_division(builder_, op, is_signed, a, b);
    case Binary::kMaximum:
      return extremum(llvm::Intrinsic::smax, llvm::Intrinsic::umax);
    case Binary::kMinimum:
      return extremum(llvm::Intrinsic::smin, llvm::Intrinsic::umin);
    case Binary::kPower:
      return integer_power(builder_, is_signed, a, b);
    case Binary::kAnd:
      return builder_.CreateAnd(a, b);
    case Binary::kOr:
      return builder_.CreateOr(a, b);
    case Binary::kXor:
      return builder_.CreateXor(a, b);
    case Binary::kShiftLeft:
      return builder_.CreateShl(a, b);
    case Binary::kShiftRight:
      return is_signed ? builder_.CreateAShr(a, b) : builder_.CreateLShr(a, b);
    default:
      throw InternalError("not an integer operation");
  }
}

llvm::Value* ExpressionEmitter::emit_comparison(Binary op, DType dtype, llvm::Value* a, llvm::Value* b) {
  const bool floating = is_floating(dtype), with_sign = dtype != DType::kBool && is_signed(dtype);
  using Predicate = llvm::CmpInst::Predicate;
  const auto compare = [&](Predicate real, Predicate with, Predicate without) {
    return builder_.CreateCmp(floating ? real : with_sign ? with : without, a, b);
  };
  switch (op) {
    case Binary::kEqual:
      return compare(Predicate::FCMP_OEQ, Predicate::ICMP_EQ, Predicate::ICMP_EQ);
    case Binary::kNotEqual:
      return compare(Predicate::FCMP_UNE, Predicate::ICMP_NE, Predicate::ICMP_NE);
    case Binary::kLess:
      return compare(Predicate::FCMP_OLT, Predicate::ICMP_SLT, Predicate::ICMP_ULT);
    case Binary::kLessEqual:
      return compare(Predicate::FCMP_OLE, Predicate::ICMP_SLE, Predicate::ICMP_ULE);
    case Binary::kGreater:
      return compare(Predicate::FCMP_OGT, Predicate::ICMP_SGT, Predicate::ICMP_UGT);
    default:
      return compare(Predicate::FCMP_OGE, Predicate::ICMP_SGE, Predicate::ICMP_UGE);
  }
}

llvm::Value* ExpressionEmitter::both(llvm::Value* guard, llvm::Value* condition) {
  if (guard == nullptr) return condition;
  const bool is_alike = guard->getType() == condition->getType();
  llvm::Value* result = is_alike ? builder_.CreateAnd(guard, condition)
                                 : builder_.CreateAnd(broadcast(builder_, guard, lanes_),
                                                      broadcast(builder_, condition, lanes_));
  if (result != guard) wider_.emplace(result, guard);  // constants are folded
  return result;
}

llvm::Value* ExpressionEmitter::emit_select(const Node& node, llvm::Value* guard) {
  llvm::Value* condition = emit(node.operands[0], guard);
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition))
    return emit(node.operands[known->isOne() ? 1 : 2], guard);
  if (loops::is_rare(node)) {
    llvm::Value* usual = emit(node.operands[2], guard);
    const Memo outside = done_;  // what the arm computes is known in its block alone
    llvm::Value* result =
        branch_rarely(builder_, condition, usual, lanes_, [&] { return emit(node.operands[1], guard); });
    done_ = outside;
    return result;
  }
  const auto arm = [&](const Expr& expression, bool negated) {
    if (!is_guarded(expression)) return emit(expression);
    return emit(expression, both(guard, negated ? builder_.CreateNot(condition) : condition));
  };
  llvm::Value* then = arm(node.operands[1], false);
  llvm::Value* otherwise = arm(node.operands[2], true);
  const bool vector = condition->getType()->isVectorTy() || then->getType()->isVectorTy() ||
                      otherwise->getType()->isVectorTy();
  if (vector) {
    then = broadcast(builder_, then, lanes_);
    otherwise = broadcast(builder_, otherwise, lanes_);
  }
  return choose(builder_, condition, then, otherwise);
}

llvm::Value* ExpressionEmitter::emit_convert(DType from, DType to, llvm::Value* value) {
  llvm::Type* type = arithmetic_type(builder_, to, value->getType()->isVectorTy() ? lanes_ : 1);
  const bool from_signed = from != DType::kBool && is_signed(from);
  if (is_floating(from)) {
    if (is_floating(to)) return builder_.CreateFPCast(value, type);
    if (to == DType::kBool) return builder_.CreateFCmpUNE(value, llvm::ConstantFP::get(value->getType(), 0));
    return saturated(builder_, value, type, is_signed(to));
  }
  if (is_floating(to))
    return from_signed ? builder_.CreateSIToFP(value, type) : builder_.CreateUIToFP(value, type);
  if (to == DType::kBool) return builder_.CreateIsNotNull(value);
  if (to == DType::kU8 || to == DType::kI8) {
    if (llvm::Value* bytes = packed_bytes(builder_, value, is_signed(to))) return bytes;
  }
  return builder_.CreateIntCast(value, type, from_signed);
}

}  // namespace ingot::core::cpu
