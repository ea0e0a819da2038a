// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/packed_bytes.h"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

#include <cmath>
#include <optional>
#include <vector>

#include "backends/cpu/compile/llvm/elements.h"

namespace ingot::core::cpu {
namespace {

using namespace llvm::PatternMatch;

constexpr int kLanes = 16;  // of a register

llvm::Value* without_fence(llvm::Value* value) {
  auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(value);
  const bool is_fence = call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::arithmetic_fence;
  return is_fence ? call->getArgOperand(0) : value;
}

// A value that is not above `end`, or not below it.
struct Limited {
  llvm::Value* value;  // before it was limited
  double end;
};

std::optional<Limited> limited(llvm::Value* value, llvm::CmpInst::Predicate beyond) {
  auto* choice = llvm::dyn_cast<llvm::SelectInst>(without_fence(value));
  if (choice == nullptr) return std::nullopt;
  const auto* compare = llvm::dyn_cast<llvm::FCmpInst>(choice->getCondition());
  const llvm::APFloat* end = nullptr;
  if (compare == nullptr || compare->getOperand(0) != choice->getTrueValue() ||
      compare->getOperand(1) != choice->getFalseValue() ||
      llvm::CmpInst::getOrderedPredicate(compare->getPredicate()) != beyond ||
      !match(choice->getFalseValue(), m_APFloat(end)) || end->isNaN())
    return std::nullopt;
  return Limited{choice->getTrueValue(), end->convertToDouble()};
}

// What bytes are made of: the nearest whole number of `value`, at most `high`, plus `offset`.
struct Rounded {
  llvm::Value* value;
  double high;
  int64_t offset;
};

std::optional<Rounded> rounded(llvm::Value* whole, bool is_signed) {
  const llvm::APInt* added = nullptr;
  llvm::Value* moved = nullptr;
  int64_t offset = 0;
  if (match(whole, m_Add(m_Value(moved), m_APInt(added)))) {
    offset = added->getSExtValue();
    whole = moved;
  }
  const auto* conversion = llvm::dyn_cast<llvm::IntrinsicInst>(whole);
  if (conversion == nullptr || conversion->getIntrinsicID() != llvm::Intrinsic::lrint) return std::nullopt;
  const auto below = limited(conversion->getArgOperand(0), llvm::CmpInst::FCMP_OLT);
  if (!below) return std::nullopt;
  const auto above = limited(below->value, llvm::CmpInst::FCMP_OGT);
  const double smallest = is_signed ? -128 : 0, move = static_cast<double>(offset);
  constexpr double kFits = 255;  // i16, with room for what is added
  if (!above || above->end + move != smallest || below->end + move > smallest + 255 || std::abs(move) > kFits)
    return std::nullopt;
  return Rounded{above->value, below->end, offset};
}

llvm::Value* part_of(Builder& builder, llvm::Value* value, int first) {
  std::vector<int> lanes;
  for (int lane = 0; lane < kLanes; ++lane) lanes.push_back(first + lane);
  return builder.CreateShuffleVector(value, lanes);
}

// NaN and what is below all integers become the smallest one, which saturates.
llvm::Value* whole_part(Builder& builder, llvm::Value* value, double high) {
  llvm::Value* end = llvm::ConstantFP::get(value->getType(), high);
  llvm::Value* low = builder.CreateSelect(builder.CreateFCmpULT(value, end), value, end);
  constexpr uint32_t kEvenAsSet = 4;  // rounding as the processor is set: to even
  return builder.CreateIntrinsic(
      llvm::Intrinsic::x86_avx512_mask_cvtps2dq_512, {},
      {low, llvm::Constant::getNullValue(stored_type(builder, DType::kI32, kLanes)), builder.getInt16(0xffff),
       builder.getInt32(kEvenAsSet)});
}

}  // namespace

bool packs_bytes(Builder& builder, int lanes) {
  if (lanes != 2 * kLanes && lanes != 4 * kLanes) return false;
  const llvm::Function* function = builder.GetInsertBlock()->getParent();
  return function->getFnAttribute("target-cpu").getValueAsString() == "x86-64-v4";
}

// Packing interleaves quarters of registers, which one permutation of words takes back.
llvm::Value* packed_bytes(Builder& builder, llvm::Value* whole, bool is_signed) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(whole->getType());
  if (type == nullptr || type->getScalarSizeInBits() != 32) return nullptr;
  const int lanes = static_cast<int>(type->getNumElements());
  if (!packs_bytes(builder, lanes)) return nullptr;
  const auto number = rounded(whole, is_signed);
  if (!number) return nullptr;
  const int vectors = lanes / kLanes;
  const auto part = [&](int i) {
    return whole_part(builder, part_of(builder, number->value, i * kLanes), number->high);
  };
  const auto pair = [&](int i) {
    llvm::Value* words =
        builder.CreateIntrinsic(llvm::Intrinsic::x86_avx512_packssdw_512, {}, {part(i), part(i + 1)});
    if (number->offset == 0) return words;
    llvm::Value* offset =
        llvm::ConstantInt::get(words->getType(), static_cast<uint64_t>(number->offset), true);
    return builder.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, words, offset);
  };
  llvm::Value* first = pair(0);
  llvm::Value* second = vectors == 2 ? first : pair(2);
  llvm::Value* bytes = builder.CreateIntrinsic(
      is_signed ? llvm::Intrinsic::x86_avx512_packsswb_512 : llvm::Intrinsic::x86_avx512_packuswb_512, {},
      {first, second});
  std::vector<int> from;
  for (int word = 0; word < lanes / 4; ++word) from.push_back(word % 4 * 4 + word / 4);
  llvm::Value* words = builder.CreateBitCast(bytes, stored_type(builder, DType::kI32, kLanes));
  return builder.CreateBitCast(builder.CreateShuffleVector(words, from),
                               stored_type(builder, DType::kU8, lanes));
}

}  // namespace ingot::core::cpu
