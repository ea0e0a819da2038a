// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/fixed_rows.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <array>

#include "backends/cpu/compile/llvm/elements.h"

namespace ingot::core::cpu {
namespace {

constexpr int kRegisterLanes = 16;
constexpr uint32_t kInfinityBits = 0x7f800000;

llvm::Value* magnitude(Builder& builder, llvm::Value* value, int lanes) {
  llvm::Type* bits = stored_type(builder, DType::kI32, lanes);
  return builder.CreateAnd(builder.CreateBitCast(value, bits), 0x7fffffff);
}

// Writes one block.
struct BlockWriter {
  Builder& builder;
  const FixedRows& fixed;
  int64_t offset;

  using Values = std::vector<llvm::Value*>;
  llvm::Value* as_float(llvm::Value* bits) const { return builder.CreateBitCast(bits, builder.getFloatTy()); }
  llvm::Value* exponent_field(llvm::Value* exponent) const { return builder.CreateShl(exponent, 23); }

  Values load(llvm::Value* from) const {
    Values result;
    for (int64_t k = 0; k < fixed.block; k += kRegisterLanes)
      result.push_back(load_lanes(builder, DType::kF32,
                                  builder.CreateConstGEP1_64(builder.getFloatTy(), from, k), kRegisterLanes));
    return result;
  }

  llvm::Value* largest(const Values& numbers) const {
    llvm::Value* result = nullptr;
    for (llvm::Value* each : numbers) {
      llvm::Value* size = magnitude(builder, each, kRegisterLanes);
      result = result == nullptr ? size : builder.CreateBinaryIntrinsic(llvm::Intrinsic::umax, result, size);
    }
    return builder.CreateIntMaxReduce(result);
  }

  llvm::Value* rounded(llvm::Value* value) const {
    constexpr uint32_t kEvenAsSet = 4;  // rounding as the processor is set: to even
    return builder.CreateIntrinsic(
        llvm::Intrinsic::x86_avx512_mask_cvtps2dq_512, {},
        {value, llvm::Constant::getNullValue(stored_type(builder, DType::kI32, kRegisterLanes)),
         builder.getInt16(0xffff), builder.getInt32(kEvenAsSet)});
  }

  // The digits of 16 numbers, the lowest first: what is left is divided by 256 and rounded, so that digits
  // are signed.
  std::array<llvm::Value*, kDigits> digits(llvm::Value* numbers) const {
    std::array<llvm::Value*, kDigits> result{};
    for (llvm::Value*& digit : result) {
      digit = builder.CreateTrunc(numbers, stored_type(builder, DType::kI8, kRegisterLanes));
      llvm::Value* half = llvm::ConstantInt::get(numbers->getType(), 128);
      numbers = builder.CreateAShr(builder.CreateAdd(numbers, half), 8);
    }
    return result;
  }

  llvm::Value* in_words(const std::array<llvm::Value*, kDigits>& digits) const {
    std::vector<int> pairs(size_t{2} * kRegisterLanes), order;
    for (int i = 0; i < 2 * kRegisterLanes; ++i) pairs[i] = i;
    llvm::Value* low = builder.CreateShuffleVector(digits[0], digits[1], pairs);
    llvm::Value* high = builder.CreateShuffleVector(digits[2], digits[2], pairs);
    for (int group = 0; group < kRegisterLanes / FixedRows::kOfWords; ++group) {
      for (int digit = 0; digit < kDigits; ++digit) {
        for (int i = 0; i < FixedRows::kOfWords; ++i)
          order.push_back(digit * kRegisterLanes + group * FixedRows::kOfWords + i % 4 * 2 + i / 4);
      }
    }
    return builder.CreateShuffleVector(low, high, order);
  }

  // Returns the largest magnitude, as its bits.
  llvm::Value* write(llvm::Value* from, llvm::Value* to, llvm::Value* parameters) const {
    const Values numbers = load(from);
    llvm::Value* top = largest(numbers);
    // The exponent of a number a little above the largest: n stays below 2^23 less a 128th, as digits must.
    // Small numbers have that of 2^-100, whose reciprocal is finite.
    llvm::Value* exponent = builder.CreateLShr(builder.CreateAdd(top, builder.getInt32(0x20000)), 23);
    exponent = builder.CreateBinaryIntrinsic(llvm::Intrinsic::umax, exponent, builder.getInt32(27));
    llvm::Value* unit = as_float(exponent_field(builder.CreateSub(exponent, builder.getInt32(22))));
    llvm::Value* inverse = as_float(exponent_field(builder.CreateSub(builder.getInt32(276), exponent)));
    llvm::Value* spread = builder.CreateVectorSplat(kRegisterLanes, inverse);
    llvm::Value* sum = nullptr;
    for (size_t i = 0; i < numbers.size(); ++i) {
      llvm::Value* whole = rounded(builder.CreateFMul(numbers[i], spread));
      sum = sum == nullptr ? whole : builder.CreateAdd(sum, whole);
      const int64_t bytes = FixedRows::kGroupBytes * kRegisterLanes / FixedRows::kOfWords;
      builder.CreateAlignedStore(
          in_words(digits(whole)),
          builder.CreateConstGEP1_64(builder.getInt8Ty(), to, static_cast<int64_t>(i) * bytes),
          llvm::Align(4));
    }
    store_parameters(unit, builder.CreateAddReduce(sum), parameters);
    return top;
  }

  void store_parameters(llvm::Value* unit, llvm::Value* sum, llvm::Value* to) const {
    const auto number = [&](double value) { return llvm::ConstantFP::get(builder.getFloatTy(), value); };
    llvm::Value* all =
        builder.CreateFMul(builder.CreateFNeg(builder.CreateSIToFP(sum, builder.getFloatTy())), unit);
    const auto store = [&](FixedParameter parameter, llvm::Value* value) {
      builder.CreateStore(value, builder.CreateConstGEP1_64(builder.getFloatTy(), to, parameter));
    };
    store(kUnit, unit);
    store(kHighUnit, builder.CreateFMul(unit, number(65536)));
    store(kMinusAll, all);
    store(kMinusBase, builder.CreateFMul(all, number(static_cast<double>(offset))));
  }
};

llvm::Value* larger(Builder& builder, llvm::Value* a, llvm::Value* b) {
  return builder.CreateBinaryIntrinsic(llvm::Intrinsic::umax, a, b);
}

}  // namespace

int64_t FixedRows::row_bytes() const {
  return round_up(digit_bytes() + depth / block * kFixedParameters * static_cast<int64_t>(sizeof(float)), 64);
}

FixedRows fixed_rows(int64_t depth, int64_t block) {
  constexpr int64_t kLongest = 128;
  int64_t own = block;
  if (own > kLongest) {
    own = kLongest;
    while (block % own != 0) own /= 2;
  }
  return {depth, own};
}

llvm::Value* write_fixed_rows(Scaffold& scaffold, const FixedRows& fixed, int64_t offset, llvm::Value* from,
                              llvm::Value* rows, llvm::Value* to) {
  Builder& builder = scaffold.builder;
  const BlockWriter writer{builder, fixed, offset};
  const std::array<llvm::Value*, 1> none{builder.getInt32(0)};
  const auto of_row = [&](llvm::Value* row, std::span<llvm::Value* const> before) {
    llvm::Value* source = scaffold.float_at(from, scaffold.times(row, fixed.depth));
    llvm::Value* target = scaffold.byte_at(to, scaffold.times(row, fixed.row_bytes()));
    llvm::Value* parameters = scaffold.byte_at(target, scaffold.number(fixed.digit_bytes()));
    return emit_carrying_loop(builder, scaffold.number(0), scaffold.number(fixed.depth / fixed.block), 1,
                              before, [&](llvm::Value* block, std::span<llvm::Value* const> now) {
                                llvm::Value* top = writer.write(
                                    scaffold.float_at(source, scaffold.times(block, fixed.block)),
                                    scaffold.byte_at(target, scaffold.times(block, fixed.block * kDigits)),
                                    scaffold.float_at(parameters, scaffold.times(block, kFixedParameters)));
                                return std::vector{larger(builder, now[0], top)};
                              });
  };
  llvm::Value* top = emit_carrying_loop(builder, scaffold.number(0), rows, 1, none, of_row)[0];
  return builder.CreateICmpULT(top, builder.getInt32(kInfinityBits));
}

llvm::Value* all_finite(Scaffold& scaffold, llvm::Value* from, llvm::Value* count, int lanes) {
  Builder& builder = scaffold.builder;
  const std::array<llvm::Value*, 1> none{
      llvm::Constant::getNullValue(stored_type(builder, DType::kI32, lanes))};
  llvm::Value* top = emit_carrying_loop(
      builder, scaffold.number(0), count, lanes, none,
      [&](llvm::Value* k, std::span<llvm::Value* const> now) {
        llvm::Value* numbers = load_lanes(builder, DType::kF32, scaffold.float_at(from, k), lanes);
        return std::vector{larger(builder, now[0], magnitude(builder, numbers, lanes))};
      })[0];
  return builder.CreateICmpULT(builder.CreateIntMaxReduce(top), builder.getInt32(kInfinityBits));
}

}  // namespace ingot::core::cpu
