// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/small_floats.h"

#include <cmath>

namespace ingot::core::cpu {
namespace {

// Short notation for integer arithmetic on the bits of floats; constants take the type of the other operand.
struct Bits {
  Builder& builder;
  llvm::Type* i32;
  llvm::Type* real;

  Bits(Builder& builder, llvm::Type* like)
      : builder(builder), i32(shaped(like, builder.getInt32Ty())), real(shaped(like, builder.getFloatTy())) {}

  static llvm::Type* shaped(llvm::Type* like, llvm::Type* element) {
    auto* vector = llvm::dyn_cast<llvm::VectorType>(like);
    return vector == nullptr ? element : llvm::VectorType::get(element, vector->getElementCount());
  }

  llvm::Value* constant(uint64_t value) const { return llvm::ConstantInt::get(i32, value); }
  llvm::Value* number(double value) const { return llvm::ConstantFP::get(real, value); }
  llvm::Value* of(llvm::Value* value) const { return builder.CreateBitCast(value, i32); }
  llvm::Value* as_float(llvm::Value* bits) const { return builder.CreateBitCast(bits, real); }
  llvm::Value* absolute(llvm::Value* value) const {
    return builder.CreateAnd(of(value), constant(0x7fffffff));
  }
  // The 16 or 8 low bits.
  llvm::Value* truncated(llvm::Value* bits, unsigned width) const {
    return builder.CreateTrunc(bits, i32->getWithNewBitWidth(width));
  }
  // Drops `count` low bits, round to nearest even.
  llvm::Value* rounded_shift(llvm::Value* bits, unsigned count) const {
    llvm::Value* odd = builder.CreateAnd(builder.CreateLShr(bits, count), constant(1));
    llvm::Value* rounding = builder.CreateAdd(odd, constant((1u << (count - 1)) - 1));
    return builder.CreateLShr(builder.CreateAdd(bits, rounding), count);
  }
};

// An 8-bit format with `mantissa` bits and exponent bias `bias`.
struct Format {
  unsigned mantissa;
  int bias;
  uint32_t overflow_from;  // bits of the first magnitude, as float, that becomes `overflow`
  uint32_t overflow;       // infinity, or the largest value if there is none
  uint32_t nan;
};
constexpr Format kE4M3{3, 7, 0x43e80001, 0x7e, 0x7f};   // above 464 the largest, 448: it has no infinity
constexpr Format kE5M2{2, 15, 0x47700000, 0x7c, 0x7f};  // from 61440, halfway between 57344 and 65536

llvm::Value* narrow_to_byte(Builder& builder, llvm::Value* value, const Format& format) {
  const Bits bits(builder, value->getType());
  llvm::Value* magnitude = bits.absolute(value);
  const unsigned dropped = 23 - format.mantissa;
  llvm::Value* normal =
      builder.CreateSub(bits.rounded_shift(magnitude, dropped),
                        bits.constant(static_cast<uint64_t>(127 - format.bias) << format.mantissa));
  // Adding a value whose last bit is the smallest subnormal makes the hardware round there.
  const double magic = std::ldexp(1.0, 1 - format.bias - static_cast<int>(format.mantissa) + 23);
  llvm::Value* aligned = builder.CreateFAdd(bits.as_float(magnitude), bits.number(magic));
  llvm::Value* subnormal = builder.CreateSub(bits.of(aligned), bits.of(bits.number(magic)));
  llvm::Value* is_subnormal =
      builder.CreateICmpULT(magnitude, bits.constant(static_cast<uint64_t>(128 - format.bias) << 23));
  llvm::Value* result = builder.CreateSelect(is_subnormal, subnormal, normal);
  result = builder.CreateSelect(builder.CreateICmpUGE(magnitude, bits.constant(format.overflow_from)),
                                bits.constant(format.overflow), result);
  result = builder.CreateSelect(builder.CreateICmpUGT(magnitude, bits.constant(0x7f800000)),
                                bits.constant(format.nan), result);
  llvm::Value* sign = builder.CreateAnd(builder.CreateLShr(bits.of(value), 24), bits.constant(0x80));
  return bits.truncated(builder.CreateOr(result, sign), 8);
}

// LLVM moves comparisons, choices, rounding and divisions of floats to the halves that they came from, or
// become; where processors have no such instructions, it takes vectors apart for them.
llvm::Value* keep_wide(Builder& builder, llvm::Value* value) {
  return builder.CreateIntrinsic(llvm::Intrinsic::arithmetic_fence, {value->getType()}, {value});
}

// Of 32-bit words.
llvm::Value* upper_halves(Builder& builder, llvm::Value* words) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(words->getType());
  if (vector == nullptr) return builder.CreateTrunc(builder.CreateLShr(words, 16), builder.getInt16Ty());
  std::vector<int> odd;
  for (int i = 0; i < static_cast<int>(vector->getNumElements()); ++i) odd.push_back(2 * i + 1);
  auto* halves = llvm::FixedVectorType::get(builder.getInt16Ty(), 2 * vector->getNumElements());
  return builder.CreateShuffleVector(builder.CreateBitCast(words, halves), odd);
}

}  // namespace

llvm::Value* half_to_float(Builder& builder, llvm::Value* bits) {
  llvm::Type* half = Bits::shaped(bits->getType(), builder.getHalfTy());
  return keep_wide(builder, builder.CreateFPExt(builder.CreateBitCast(bits, half),
                                                Bits::shaped(half, builder.getFloatTy())));
}

llvm::Value* float_to_half(Builder& builder, llvm::Value* value) {
  llvm::Type* half = Bits::shaped(value->getType(), builder.getHalfTy());
  return builder.CreateBitCast(builder.CreateFPTrunc(keep_wide(builder, value), half),
                               Bits::shaped(half, builder.getInt16Ty()));
}

llvm::Value* bfloat16_to_float(Builder& builder, llvm::Value* bits) {
  const Bits wide(builder, bits->getType());
  return wide.as_float(wide.builder.CreateShl(wide.builder.CreateZExt(bits, wide.i32), 16));
}

// The upper halves of numbers to which a little less, or half of what the lower half can hold was added. Of
// vectors they are taken by one permutation, and the other steps are one instruction each on AVX-512.
llvm::Value* float_to_bfloat16(Builder& builder, llvm::Value* value) {
  const Bits bits(builder, value->getType());
  llvm::Value* given = bits.of(value);
  llvm::Value* is_odd =
      builder.CreateICmpNE(builder.CreateAnd(given, bits.constant(0x10000)), bits.constant(0));
  llvm::Value* rounded = builder.CreateSelect(is_odd, builder.CreateAdd(given, bits.constant(0x8000)),
                                              builder.CreateAdd(given, bits.constant(0x7fff)));
  llvm::Value* is_nan = builder.CreateFCmpUNO(value, value);
  return upper_halves(builder, builder.CreateSelect(is_nan, bits.constant(0x7fc00000), rounded));
}

// By way of f16, whose exponent is larger by 8: also for subnormal values. The sign stays at the top of the
// 16 bits.
llvm::Value* e4m3_to_float(Builder& builder, llvm::Value* stored) {
  llvm::Type* word = stored->getType()->getWithNewBitWidth(16);
  const auto constant = [&](uint64_t value) { return llvm::ConstantInt::get(word, value); };
  llvm::Value* moved = builder.CreateShl(builder.CreateSExt(stored, word), 7);
  llvm::Value* is_nan = builder.CreateICmpEQ(builder.CreateAnd(moved, constant(0x3f80)), constant(0x3f80));
  llvm::Value* nan = builder.CreateAnd(builder.CreateSExt(is_nan, word), constant(0x7e00));
  llvm::Value* half = builder.CreateOr(builder.CreateAnd(moved, constant(0xbf80)), nan);
  llvm::Value* value = half_to_float(builder, half);
  return builder.CreateFMul(value, llvm::ConstantFP::get(value->getType(), 256.0));
}

llvm::Value* float_to_e4m3(Builder& builder, llvm::Value* value) {
  return narrow_to_byte(builder, value, kE4M3);
}

// e5m2 is the upper half of f16.
llvm::Value* e5m2_to_float(Builder& builder, llvm::Value* stored) {
  llvm::Value* wide = builder.CreateZExt(stored, stored->getType()->getWithNewBitWidth(16));
  return half_to_float(builder, builder.CreateShl(wide, 8));
}

llvm::Value* float_to_e5m2(Builder& builder, llvm::Value* value) {
  return narrow_to_byte(builder, value, kE5M2);
}

}  // namespace ingot::core::cpu
