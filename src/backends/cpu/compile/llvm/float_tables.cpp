// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/float_tables.h"

#include <array>
#include <bit>

#include <llvm/IR/IntrinsicsX86.h>

#include "backends/cpu/compile/llvm/elements.h"
#include "types/tensor.h"

namespace ingot::core::cpu {
namespace {

llvm::Value* byte_constants(Builder& builder, const std::array<uint8_t, kTableNumbers>& bytes) {
  return llvm::ConstantDataVector::get(builder.getContext(),
                                       llvm::ArrayRef<uint8_t>(bytes.data(), bytes.size()));
}

uint8_t byte_of_value(DType stored, int code, int byte) {
  const auto bits = static_cast<uint8_t>(code);
  const float value = stored == DType::kE4M3 ? e4m3_to_float(bits) : e5m2_to_float(bits);
  return static_cast<uint8_t>(std::bit_cast<uint32_t>(value) >> (8 * byte));
}

// Byte `byte` of the values of all numbers without their sign.
llvm::Value* look_up(Builder& builder, DType stored, llvm::Value* numbers, int byte) {
  std::array<uint8_t, kTableNumbers> low{}, high{};
  for (int code = 0; code < kTableNumbers; ++code) {
    low[code] = byte_of_value(stored, code, byte);
    high[code] = byte_of_value(stored, code + kTableNumbers, byte);
  }
  return builder.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_qi_512, {},
                                 {byte_constants(builder, low), numbers, byte_constants(builder, high)});
}

// Alternates elements of the lower (or upper) halves of each quarter: one instruction.
llvm::Value* alternate(Builder& builder, llvm::Value* first, llvm::Value* second, bool upper) {
  const auto count = static_cast<int>(llvm::cast<llvm::FixedVectorType>(first->getType())->getNumElements());
  const int quarter = count / 4;
  std::vector<int> lanes;
  for (int i = 0; i < count; ++i)
    lanes.push_back(i / quarter * quarter + (upper ? quarter / 2 : 0) + i % quarter / 2 + i % 2 * count);
  return builder.CreateShuffleVector(first, second, lanes);
}

}  // namespace

std::vector<llvm::Value*> load_by_tables(Builder& builder, DType stored, llvm::Value* pointer) {
  llvm::Value* numbers = load_lanes(builder, DType::kU8, pointer, kTableNumbers);
  llvm::Value* signs = builder.CreateAnd(numbers, 0x80);
  llvm::Value* high = builder.CreateOr(look_up(builder, stored, numbers, 3), signs);
  llvm::Value* low = look_up(builder, stored, numbers, 2);
  llvm::Type* halves = stored_type(builder, DType::kU16, kTableNumbers / 2);
  llvm::Type* floats = stored_type(builder, DType::kF32, kTableNumbers / 4);
  std::vector<llvm::Value*> result;
  for (const bool upper : {false, true}) {
    llvm::Value* pairs = builder.CreateBitCast(alternate(builder, low, high, upper), halves);
    for (const bool upper_pairs : {false, true}) {
      llvm::Value* words = alternate(builder, llvm::Constant::getNullValue(halves), pairs, upper_pairs);
      result.push_back(builder.CreateBitCast(words, floats));
    }
  }
  return result;
}

std::vector<llvm::Value*> in_order_of_numbers(Builder& builder, const std::vector<llvm::Value*>& vectors) {
  const auto quarters = [&](llvm::Value* a, llvm::Value* b, std::array<int, 4> from) {
    std::vector<int> lanes;
    for (const int quarter : from) {
      for (int i = 0; i < 4; ++i) lanes.push_back(4 * quarter + i);
    }
    return builder.CreateShuffleVector(a, b, lanes);
  };
  std::vector<llvm::Value*> pairs, result;
  for (const int first : {0, 2}) {
    pairs.push_back(quarters(vectors[first], vectors[first + 1], {0, 1, 4, 5}));
    pairs.push_back(quarters(vectors[first], vectors[first + 1], {2, 3, 6, 7}));
  }
  for (const int half : {0, 1}) {
    result.push_back(quarters(pairs[half], pairs[half + 2], {0, 2, 4, 6}));
    result.push_back(quarters(pairs[half], pairs[half + 2], {1, 3, 5, 7}));
  }
  return result;
}

}  // namespace ingot::core::cpu
