// SPDX-License-Identifier: Apache-2.0
// The operators of Loop IR.
#pragma once

namespace ingot::core::loops {

enum class Unary {
  kNegate,
  kAbsolute,
  kNot,
  kSquareRoot,
  kFloor,
  kCeil,
  kTruncate,
  kRoundEven,
};
enum class Binary {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kRemainder /* sign of the dividend: fmod */,
  kMaximum,
  kMinimum,
  kPower /* expanded */,
  kAtan2 /* expanded */,
  kAnd,
  kOr,
  kXor,
  kShiftLeft,
  kShiftRight,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,  // results are bool
};

enum class Combine { kNone, kAdd, kMultiply, kMaximum, kMinimum, kAnd, kOr };

}  // namespace ingot::core::loops
