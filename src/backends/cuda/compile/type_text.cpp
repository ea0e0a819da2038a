// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/type_text.h"

#include <fmt/core.h>

#include "loops/scalar.h"
#include "support/error.h"

namespace ingot::core::cuda {

std::string_view type_name(DType arithmetic) {
  switch (arithmetic) {
    case DType::kBool:
      return "bool";
    case DType::kU8:
      return "u8";
    case DType::kI8:
      return "i8";
    case DType::kI16:
      return "i16";
    case DType::kU16:
      return "u16";
    case DType::kI32:
      return "i32";
    case DType::kU32:
      return "u32";
    case DType::kI64:
      return "i64";
    case DType::kU64:
      return "u64";
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    default:
      throw InternalError(fmt::format("no arithmetic is done in {}", name(arithmetic)));
  }
}

std::string_view storage_name(DType stored) {
  switch (stored) {
    case DType::kF16:
    case DType::kBF16:
      return "u16";
    case DType::kE4M3:
    case DType::kE5M2:
    case DType::kBool:
      return "u8";
    case DType::kI4:
    case DType::kU4:
      throw UnsupportedError("INGOT-N602", "kernels for GPUs do not read or write four-bit integers");
    default:
      return type_name(stored);
  }
}

std::string_view vector_name(DType stored) { return is_half(stored) ? "Halves" : "Floats"; }

std::string group_of(DType stored, int wide) {
  constexpr int kPacked = 8;
  if (stored != DType::kF32 && wide == kPacked) return "Packed";
  return fmt::format("{}<{}>", vector_name(stored), wide);
}

std::string_view reduction_name(loops::Combine combine) {
  constexpr std::string_view kNames[] = {"", "Add", "Multiply", "Maximum", "Minimum", "And", "Or"};
  return kNames[static_cast<size_t>(combine)];
}

std::string identity_text(loops::Combine combine, DType arithmetic) {
  const loops::Scalar identity = loops::identity_of(combine, arithmetic);
  return is_floating(arithmetic)
             ? fmt::format("({}){}", type_name(arithmetic),
                           identity.number == 1   ? "1"
                           : identity.number == 0 ? "0"
                           : identity.number > 0  ? "__int_as_float(0x7f800000)"
                                                  : "-__int_as_float(0x7f800000)")
             : fmt::format("({})0x{:x}ull", type_name(arithmetic), static_cast<uint64_t>(identity.integer));
}

}  // namespace ingot::core::cuda
