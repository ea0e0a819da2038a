// SPDX-License-Identifier: Apache-2.0
#include "ir/op.h"

#include "support/error.h"

namespace ingot::core {

bool contains(DTypeSet set, DType dtype) {
  switch (set) {
    case DTypeSet::kAny:
      return !is_complex(dtype);
    case DTypeSet::kFloating:
      return is_floating(dtype);
    case DTypeSet::kInteger:
      return is_integer(dtype);
    case DTypeSet::kIntegerOrBool:
      return is_integer(dtype) || dtype == DType::kBool;
    case DTypeSet::kNumeric:
      return is_floating(dtype) || is_integer(dtype);
    case DTypeSet::kBool:
      return dtype == DType::kBool;
    case DTypeSet::kIndex:
      return dtype == DType::kI32 || dtype == DType::kI64;
  }
  throw InternalError("unknown dtype set");
}

std::string_view name(DTypeSet set) {
  switch (set) {
    case DTypeSet::kAny:
      return "any dtype";
    case DTypeSet::kFloating:
      return "a floating-point dtype";
    case DTypeSet::kInteger:
      return "an integer dtype";
    case DTypeSet::kIntegerOrBool:
      return "an integer dtype or bool";
    case DTypeSet::kNumeric:
      return "a floating-point or integer dtype";
    case DTypeSet::kBool:
      return "bool";
    case DTypeSet::kIndex:
      return "i32 or i64";
  }
  throw InternalError("unknown dtype set");
}

}  // namespace ingot::core
