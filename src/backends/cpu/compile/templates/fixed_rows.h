// SPDX-License-Identifier: Apache-2.0
// Rows of A as integers with a common exponent per block, for products with integers of four bits by the
// instruction that adds up products of bytes:
//
//   x[k] = 2^e n[k], |n| < 2^23, n = 65536 d2 + 256 d1 + d0 with digits of a signed byte
//   sum(x[k] q[k]) = 2^e (65536 sum(d2[k] q[k]) + 256 sum(d1[k] q[k]) + sum(d0[k] q[k])), exact sums
//
// n is rounded to 23 bits of the largest |x| of the block: by no more than sums of f32 are. Rows with NaN or
// infinities have no such form.
#pragma once

#include "backends/cpu/compile/templates/scaffold.h"

namespace ingot::core::cpu {

inline constexpr int kDigits = 3;

// How rows are stored: [depth / 8][kDigits][2] words, the digits of the even then those of the odd elements
// of eight, and [depth / block] FixedParameters.
struct FixedRows {
  int64_t depth, block;  // block: of a common exponent, a multiple of 16

  static constexpr int64_t kOfWords = 8;  // elements whose digits stand together
  static constexpr int64_t kGroupBytes = kOfWords * kDigits;
  int64_t digit_bytes() const { return depth / kOfWords * kGroupBytes; }
  int64_t row_bytes() const;
};

// Parameters of a block, as f32.
enum FixedParameter : int {
  kUnit,       // 2^e
  kHighUnit,   // 65536 2^e
  kMinusAll,   // -2^e sum(n)
  kMinusBase,  // that times the offset of all zero points
  kFixedParameters,
};

// Blocks of the same exponent for numbers with a scale per `block` elements: as long as three sums of bytes
// can be, and short enough that one large number spoils few others.
FixedRows fixed_rows(int64_t depth, int64_t block);

// Writes `rows` rows from `from` on to `to`; true: all their elements are finite.
llvm::Value* write_fixed_rows(Scaffold& scaffold, const FixedRows& fixed, int64_t offset, llvm::Value* from,
                              llvm::Value* rows, llvm::Value* to);

// True: all of `count` f32, a multiple of 16, are finite. Vectors of `lanes`.
llvm::Value* all_finite(Scaffold& scaffold, llvm::Value* from, llvm::Value* count, int lanes);

}  // namespace ingot::core::cpu
