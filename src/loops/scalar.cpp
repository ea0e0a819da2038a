// SPDX-License-Identifier: Apache-2.0
#include "loops/scalar.h"

#include <bit>
#include <cmath>
#include <limits>

#include "support/error.h"

namespace ingot::core::loops {
namespace {

double apply_math(Unary op, double x) {
  switch (op) {
    case Unary::kNegate:
      return -x;
    case Unary::kAbsolute:
      return std::fabs(x);
    case Unary::kSquareRoot:
      return std::sqrt(x);
    case Unary::kFloor:
      return std::floor(x);
    case Unary::kCeil:
      return std::ceil(x);
    case Unary::kTruncate:
      return std::trunc(x);
    case Unary::kRoundEven:
      return std::nearbyint(x);
    case Unary::kNot:
      break;
  }
  throw InternalError("'not' of a floating-point number");
}

// As torch: the quotient of (a - fmod(a, b)) / b, corrected by one where rounding moved it.
double floor_quotient(DType dtype, double a, double b) {
  if (b == 0) return round_to(dtype, a / b);
  const double remainder = std::fmod(a, b);
  double quotient = round_to(dtype, round_to(dtype, a - remainder) / b);
  if (remainder != 0 && (b < 0) != (remainder < 0)) quotient = round_to(dtype, quotient - 1);
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? round_to(dtype, floored + 1) : floored;
}

double modulo_of(DType dtype, double a, double b) {
  const double remainder = std::fmod(a, b);
  return remainder != 0 && (b < 0) != (remainder < 0) ? round_to(dtype, remainder + b) : remainder;
}

double extremum(bool largest, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return (largest ? a > b : a < b) ? a : b;
}

double apply_floating(Binary op, DType dtype, double a, double b) {
  switch (op) {
    case Binary::kAdd:
      return round_to(dtype, a + b);
    case Binary::kSubtract:
      return round_to(dtype, a - b);
    case Binary::kMultiply:
      return round_to(dtype, a * b);
    case Binary::kDivide:
      return round_to(dtype, a / b);
    case Binary::kFloorDivide:
      return floor_quotient(dtype, a, b);
    case Binary::kModulo:
      return modulo_of(dtype, a, b);
    case Binary::kRemainder:
      return std::fmod(a, b);
    case Binary::kMaximum:
      return extremum(true, a, b);
    case Binary::kMinimum:
      return extremum(false, a, b);
    case Binary::kPower:
      return round_to(dtype, std::pow(a, b));
    case Binary::kAtan2:
      return round_to(dtype, std::atan2(a, b));
    default:
      throw InternalError("no floating-point operation");
  }
}

int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent != 0; exponent >>= 1, factor *= factor) {
    if (exponent & 1) result *= factor;
  }
  return static_cast<int64_t>(result);
}

// Division and modulo; b is not zero.
template <typename Integer>
Integer divide_integers(Binary op, Integer a, Integer b) {
  constexpr bool kSigned = std::is_signed_v<Integer>;
  if (kSigned && b == static_cast<Integer>(-1)) {  // the one quotient that overflows wraps
    const bool quotient = op == Binary::kDivide || op == Binary::kFloorDivide;
    return quotient ? static_cast<Integer>(0 - static_cast<uint64_t>(a)) : 0;
  }
  const Integer quotient = a / b, remainder = a % b;
  const bool away = remainder != 0 && (remainder < 0) != (b < 0);
  switch (op) {
    case Binary::kDivide:
      return quotient;
    case Binary::kRemainder:
      return remainder;
    case Binary::kFloorDivide:
      return kSigned && away ? quotient - 1 : quotient;
    default:
      return kSigned && away ? remainder + b : remainder;
  }
}

int64_t apply_integer(Binary op, DType dtype, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const bool is_u64 = dtype == DType::kU64;
  const bool less = is_u64 ? ua < ub : a < b;
  switch (op) {
    case Binary::kAdd:
      return static_cast<int64_t>(ua + ub);
    case Binary::kSubtract:
      return static_cast<int64_t>(ua - ub);
    case Binary::kMultiply:
      return static_cast<int64_t>(ua * ub);
    case Binary::kDivide:
    case Binary::kFloorDivide:
    case Binary::kModulo:
    case Binary::kRemainder:
      if (b == 0) return 0;
      return is_u64 ? static_cast<int64_t>(divide_integers(op, ua, ub)) : divide_integers(op, a, b);
    case Binary::kMaximum:
      return less ? b : a;
    case Binary::kMinimum:
      return less ? a : b;
    case Binary::kPower:
      return integer_power(a, b);
    case Binary::kAnd:
      return a & b;
    case Binary::kOr:
      return a | b;
    case Binary::kXor:
      return a ^ b;
    case Binary::kShiftLeft:
      return static_cast<int64_t>(ua << ub);
    case Binary::kShiftRight:
      return is_u64 ? static_cast<int64_t>(ua >> ub) : a >> b;
    case Binary::kEqual:
      return a == b;
    case Binary::kNotEqual:
      return a != b;
    case Binary::kLess:
      return less;
    case Binary::kLessEqual:
      return less || a == b;
    case Binary::kGreater:
      return !less && a != b;
    case Binary::kGreaterEqual:
      return !less;
    case Binary::kAtan2:
      break;
  }
  throw InternalError("not an integer operation");
}

int64_t compare_floating(Binary op, double a, double b) {
  switch (op) {
    case Binary::kEqual:
      return a == b;
    case Binary::kNotEqual:
      return a != b;
    case Binary::kLess:
      return a < b;
    case Binary::kLessEqual:
      return a <= b;
    case Binary::kGreater:
      return a > b;
    default:
      return a >= b;
  }
}

int64_t saturate(DType to, double value) {
  if (std::isnan(value)) return 0;
  const int width = bit_width(to);
  const double low = is_signed(to) ? -std::ldexp(1, width - 1) : 0;
  const double high = std::ldexp(1, is_signed(to) ? width - 1 : width);  // first value out of range
  value = std::trunc(value);
  if (value < low) value = low;
  if (value >= high)
    return is_signed(to) ? static_cast<int64_t>(~uint64_t{0} >> (65 - width)) : wrap_to(to, -1);
  return value < 0 ? static_cast<int64_t>(value) : static_cast<int64_t>(static_cast<uint64_t>(value));
}

}  // namespace

double round_to(DType dtype, double value) {
  return dtype == DType::kF64 ? value : static_cast<double>(static_cast<float>(value));
}

int64_t wrap_to(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::kBool:
      return value != 0;
    case DType::kI8:
      return static_cast<int8_t>(value);
    case DType::kU8:
      return static_cast<uint8_t>(value);
    case DType::kI16:
      return static_cast<int16_t>(value);
    case DType::kU16:
      return static_cast<uint16_t>(value);
    case DType::kI32:
      return static_cast<int32_t>(value);
    case DType::kU32:
      return static_cast<uint32_t>(value);
    default:
      return value;
  }
}

Scalar apply(Unary op, DType dtype, Scalar a) {
  if (is_floating(dtype)) return {.number = round_to(dtype, apply_math(op, a.number))};
  switch (op) {
    case Unary::kNegate:
      return {.integer = wrap_to(dtype, static_cast<int64_t>(0 - static_cast<uint64_t>(a.integer)))};
    case Unary::kAbsolute:
      return a.integer >= 0 || !is_signed(dtype) ? a : apply(Unary::kNegate, dtype, a);
    case Unary::kNot:
      return {.integer = dtype == DType::kBool ? !a.integer : wrap_to(dtype, ~a.integer)};
    default:
      throw InternalError("not an integer operation");
  }
}

Scalar apply(Binary op, DType dtype, Scalar a, Scalar b) {
  if (!is_floating(dtype)) {
    const int64_t result = apply_integer(op, dtype, a.integer, b.integer);
    return {.integer = op >= Binary::kEqual ? result : wrap_to(dtype, result)};
  }
  if (op >= Binary::kEqual) return {.integer = compare_floating(op, a.number, b.number)};
  return {.number = apply_floating(op, dtype, a.number, b.number)};
}

Scalar convert_scalar(Scalar value, DType from, DType to) {
  if (is_floating(from)) {
    if (is_floating(to)) return {.number = round_to(to, value.number)};
    return {.integer = to == DType::kBool ? value.number != 0 : saturate(to, value.number)};
  }
  if (!is_floating(to)) return {.integer = wrap_to(to, value.integer)};
  const auto bits = static_cast<uint64_t>(value.integer);
  if (to == DType::kF64)
    return {.number = from == DType::kU64 ? static_cast<double>(bits) : static_cast<double>(value.integer)};
  return {.number = from == DType::kU64 ? static_cast<float>(bits) : static_cast<float>(value.integer)};
}

Scalar bitcast_scalar(Scalar value, DType from, DType to) {
  const bool wide = bit_width(from) == 64;
  if (is_floating(from)) {
    const int64_t bits = wide ? std::bit_cast<int64_t>(value.number)
                              : std::bit_cast<int32_t>(static_cast<float>(value.number));
    return {.integer = wrap_to(to, bits)};
  }
  if (!is_floating(to)) return {.integer = wrap_to(to, value.integer)};
  return {.number = wide ? std::bit_cast<double>(value.integer)
                         : std::bit_cast<float>(static_cast<int32_t>(value.integer))};
}

Scalar fma_scalar(DType dtype, Scalar a, Scalar b, Scalar c) {
  if (dtype == DType::kF64) return {.number = std::fma(a.number, b.number, c.number)};
  return {.number = std::fma(static_cast<float>(a.number), static_cast<float>(b.number),
                             static_cast<float>(c.number))};
}

Binary binary_of(Combine combine) {
  switch (combine) {
    case Combine::kAdd:
      return Binary::kAdd;
    case Combine::kMultiply:
      return Binary::kMultiply;
    case Combine::kMaximum:
      return Binary::kMaximum;
    case Combine::kMinimum:
      return Binary::kMinimum;
    case Combine::kAnd:
      return Binary::kAnd;
    case Combine::kOr:
      return Binary::kOr;
    case Combine::kNone:
      break;
  }
  throw InternalError("a stage without reduction has no combine operation");
}

Scalar identity_of(Combine combine, DType dtype) {
  const int width = bit_width(dtype);
  const double infinity = std::numeric_limits<double>::infinity();
  const int64_t largest =
      is_signed(dtype) ? static_cast<int64_t>(~uint64_t{0} >> (65 - width)) : wrap_to(dtype, -1);
  switch (combine) {
    case Combine::kMultiply:
      return {.number = 1, .integer = 1};
    case Combine::kMaximum:
      return {.number = -infinity, .integer = is_signed(dtype) ? ~largest : 0};
    case Combine::kMinimum:
      return {.number = infinity, .integer = largest};
    case Combine::kAnd:
      return {.integer = wrap_to(dtype, -1)};
    default:
      return {};
  }
}

}  // namespace ingot::core::loops
