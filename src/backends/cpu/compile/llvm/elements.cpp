// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/elements.h"

#include "backends/cpu/compile/llvm/small_floats.h"
#include "loops/kernel.h"
#include "support/error.h"

namespace ingot::core::cpu {
namespace {

llvm::Type* with_lanes(llvm::Type* element, int lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
}

llvm::Align element_alignment(DType stored) {
  return llvm::Align(static_cast<uint64_t>(bit_width(stored)) / 8);
}

}  // namespace

// f16 and bf16 are moved as integers, so that no instruction of an optional feature is selected for moves.
llvm::Type* stored_type(Builder& builder, DType stored, int lanes) {
  if (stored == DType::kF32) return with_lanes(builder.getFloatTy(), lanes);
  if (stored == DType::kF64) return with_lanes(builder.getDoubleTy(), lanes);
  return with_lanes(builder.getIntNTy(static_cast<unsigned>(bit_width(stored))), lanes);
}

llvm::Type* arithmetic_type(Builder& builder, DType dtype, int lanes) {
  if (dtype == DType::kBool) return with_lanes(builder.getInt1Ty(), lanes);
  return stored_type(builder, loops::arithmetic_dtype(dtype), lanes);
}

llvm::Value* broadcast(Builder& builder, llvm::Value* value, int lanes) {
  if (lanes == 1 || value->getType()->isVectorTy()) return value;
  return builder.CreateVectorSplat(static_cast<unsigned>(lanes), value);
}

llvm::Value* constant_value(Builder& builder, DType dtype, double number, int64_t integer) {
  llvm::Type* type = arithmetic_type(builder, dtype);
  if (is_floating(dtype)) return llvm::ConstantFP::get(type, number);
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(integer), true);
}

llvm::Value* lane_numbers(int lanes, llvm::Type* element) {
  if (lanes == 1) return llvm::ConstantInt::get(element, 0);
  std::vector<llvm::Constant*> numbers;
  for (int lane = 0; lane < lanes; ++lane)
    numbers.push_back(llvm::ConstantInt::get(element, static_cast<uint64_t>(lane)));
  return llvm::ConstantVector::get(numbers);
}

llvm::Value* first_lanes(Builder& builder, llvm::Value* count, int lanes) {
  // Clamped first, so that 32-bit lanes suffice for any count.
  llvm::Value* clamped = builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, count,
                                                       builder.getInt64(static_cast<uint64_t>(lanes)));
  llvm::Value* narrow_count = builder.CreateTrunc(clamped, builder.getInt32Ty());
  return builder.CreateICmpSLT(lane_numbers(lanes, builder.getInt32Ty()),
                               broadcast(builder, narrow_count, lanes));
}

llvm::Value* choose(Builder& builder, llvm::Value* condition, llvm::Value* then, llvm::Value* otherwise) {
  llvm::Value* chosen = builder.CreateSelect(condition, then, otherwise);
  if (!chosen->getType()->isFPOrFPVectorTy() || !llvm::isa<llvm::SelectInst>(chosen)) return chosen;
  return builder.CreateIntrinsic(llvm::Intrinsic::arithmetic_fence, {chosen->getType()}, {chosen});
}

llvm::Value* widen(Builder& builder, DType stored, llvm::Value* raw) {
  switch (stored) {
    case DType::kBool:
      return builder.CreateIsNotNull(raw);
    case DType::kF16:
      return half_to_float(builder, raw);
    case DType::kBF16:
      return bfloat16_to_float(builder, raw);
    case DType::kE4M3:
      return e4m3_to_float(builder, raw);
    case DType::kE5M2:
      return e5m2_to_float(builder, raw);
    default:
      return raw;
  }
}

llvm::Value* narrow(Builder& builder, DType stored, llvm::Value* value) {
  if (value->getType()->getScalarType()->isDoubleTy() && stored != DType::kF64)
    value = builder.CreateFPTrunc(value, value->getType()->getWithNewType(builder.getFloatTy()));
  switch (stored) {
    case DType::kBool:
      return builder.CreateZExt(value, value->getType()->getWithNewBitWidth(8));
    case DType::kF16:
      return float_to_half(builder, value);
    case DType::kBF16:
      return float_to_bfloat16(builder, value);
    case DType::kE4M3:
      return float_to_e4m3(builder, value);
    case DType::kE5M2:
      return float_to_e5m2(builder, value);
    default:
      return value;
  }
}

llvm::Value* load_lanes(Builder& builder, DType stored, llvm::Value* pointer, int lanes, llvm::Value* mask) {
  llvm::Type* type = stored_type(builder, stored, lanes);
  const llvm::Align alignment = element_alignment(stored);
  if (mask == nullptr) return widen(builder, stored, builder.CreateAlignedLoad(type, pointer, alignment));
  invariant(lanes > 1, "a mask requires a vector");
  return widen(builder, stored,
               builder.CreateMaskedLoad(type, pointer, alignment, mask, llvm::Constant::getNullValue(type)));
}

llvm::Value* load_as_float(Builder& builder, DType stored, llvm::Value* pointer, int lanes) {
  llvm::Value* numbers = load_lanes(builder, stored, pointer, lanes);
  llvm::Type* type = with_lanes(builder.getFloatTy(), lanes);
  if (is_floating(stored)) return builder.CreateFPCast(numbers, type);
  return is_signed(stored) ? builder.CreateSIToFP(numbers, type) : builder.CreateUIToFP(numbers, type);
}

void store_lanes(Builder& builder, DType stored, llvm::Value* value, llvm::Value* pointer,
                 llvm::Value* mask) {
  llvm::Value* raw = narrow(builder, stored, value);
  if (mask == nullptr) {
    builder.CreateAlignedStore(raw, pointer, element_alignment(stored));
  } else {
    builder.CreateMaskedStore(raw, pointer, element_alignment(stored), mask);
  }
}

llvm::Value* load_strided_lanes(Builder& builder, DType stored, llvm::Value* pointer, int lanes, int stride) {
  llvm::Type* type = stored_type(builder, stored, lanes * stride);
  std::vector<llvm::Constant*> touched;
  std::vector<int> wanted;
  for (int i = 0; i < lanes * stride; ++i) touched.push_back(builder.getInt1(i <= (lanes - 1) * stride));
  for (int lane = 0; lane < lanes; ++lane) wanted.push_back(lane * stride);
  llvm::Value* all =
      builder.CreateMaskedLoad(type, pointer, element_alignment(stored), llvm::ConstantVector::get(touched));
  return widen(builder, stored, builder.CreateShuffleVector(all, wanted));
}

// Every fourth byte of 64 by one masked store, as images of bytes are written whose channels are in fours.
static void store_fourths(Builder& builder, llvm::Value* bytes, llvm::Value* pointer, int lanes) {
  constexpr int kStride = 4, kWords = 16;
  llvm::Type* places = stored_type(builder, DType::kU8, kWords * kStride);
  std::vector<llvm::Constant*> written;
  for (int i = 0; i < kWords * kStride; ++i) written.push_back(builder.getInt1(i % kStride == 0));
  for (int first = 0; first < lanes; first += kWords) {
    std::vector<int> part;
    for (int lane = 0; lane < kWords; ++lane) part.push_back(first + lane);
    llvm::Value* words = builder.CreateZExt(builder.CreateShuffleVector(bytes, part),
                                            stored_type(builder, DType::kI32, kWords));
    builder.CreateMaskedStore(
        builder.CreateBitCast(words, places),
        builder.CreateConstGEP1_64(builder.getInt8Ty(), pointer, static_cast<uint64_t>(first * kStride)),
        llvm::Align(1), llvm::ConstantVector::get(written));
  }
}

static bool masks_stores(const Builder& builder) {
  const llvm::Function* function = builder.GetInsertBlock()->getParent();
  return function->getFnAttribute("target-cpu").getValueAsString() == "x86-64-v4";
}

// Registers with gaps between the elements, by masked stores: a scatter takes longer than all of them.
static void store_with_gaps(Builder& builder, llvm::Value* elements, llvm::Value* pointer, int lanes,
                            int stride, llvm::Align alignment) {
  constexpr int kRegister = 512;  // bits
  llvm::Type* element = elements->getType()->getScalarType();
  const int room = kRegister / static_cast<int>(element->getPrimitiveSizeInBits());
  for (int first = 0; first <= (lanes - 1) * stride; first += room) {
    std::vector<int> order;
    std::vector<llvm::Constant*> written;
    for (int place = first; place < first + room; ++place) {
      const bool is_element = place % stride == 0 && place / stride < lanes;
      order.push_back(is_element ? place / stride : -1);
      written.push_back(builder.getInt1(is_element));
    }
    builder.CreateMaskedStore(builder.CreateShuffleVector(elements, order),
                              builder.CreateConstGEP1_64(element, pointer, static_cast<uint64_t>(first)),
                              alignment, llvm::ConstantVector::get(written));
  }
}

static bool fits_gaps(const Builder& builder, DType stored, int64_t stride) {
  return masks_stores(builder) && bit_width(stored) > 8 && stride > 1 && stride <= 4;
}

bool has_strided_stores(const Builder& builder, DType stored, int64_t stride) {
  return bit_width(stored) < 32 || fits_gaps(builder, stored, stride);
}

void store_strided_lanes(Builder& builder, DType stored, llvm::Value* value, llvm::Value* pointer, int lanes,
                         int64_t stride) {
  llvm::Value* raw = narrow(builder, stored, value);
  const llvm::Align alignment = element_alignment(stored);
  if (masks_stores(builder) && bit_width(stored) == 8 && stride == 4 && lanes % 16 == 0)
    return store_fourths(builder, raw, pointer, lanes);
  if (fits_gaps(builder, stored, stride))
    return store_with_gaps(builder, raw, pointer, lanes, static_cast<int>(stride), alignment);
  for (int lane = 0; lane < lanes; ++lane) {
    llvm::Value* place = builder.CreateConstGEP1_64(stored_type(builder, stored), pointer,
                                                    static_cast<uint64_t>(lane * stride));
    builder.CreateAlignedStore(builder.CreateExtractElement(raw, static_cast<uint64_t>(lane)), place,
                               alignment);
  }
}

llvm::Value* gather_lanes(Builder& builder, DType stored, llvm::Value* pointers, int lanes) {
  llvm::Type* type = stored_type(builder, stored, lanes);
  return widen(builder, stored, builder.CreateMaskedGather(type, pointers, element_alignment(stored)));
}

void scatter_lanes(Builder& builder, DType stored, llvm::Value* value, llvm::Value* pointers,
                   llvm::Value* mask) {
  builder.CreateMaskedScatter(narrow(builder, stored, value), pointers, element_alignment(stored), mask);
}

llvm::Value* load_element(Builder& builder, DType stored, llvm::Value* pointer) {
  return load_lanes(builder, stored, pointer, 1);
}

void store_element(Builder& builder, DType stored, llvm::Value* value, llvm::Value* pointer) {
  store_lanes(builder, stored, value, pointer);
}

}  // namespace ingot::core::cpu
