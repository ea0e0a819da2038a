// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/prelude.h"

#include "backends/cuda/compile/half_functions.h"

namespace ingot::core::cuda {
namespace {

// Needs no header: NVRTC has none, and kernels compile faster without.
constexpr std::string_view kPrelude = R"cuda(
typedef unsigned char u8; typedef signed char i8; typedef unsigned short u16; typedef short i16;
typedef unsigned int u32; typedef int i32; typedef unsigned long long u64; typedef long long i64;
typedef float f32; typedef double f64;
#define DEVICE static __device__ __forceinline__

// ---- Overlap with the kernels before and after (programmatic dependent launch) ----
// Before wait_for_previous a kernel may read nothing but weights, and states that no earlier kernel of the program
// writes: the kernel before may still be writing what this one reads, and reading what it writes. Every kernel calls it, so that all earlier ones are done too.
DEVICE void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// From here on blocks of the next kernel may start on processors that have room.
DEVICE void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// ---- Storage formats ----
DEVICE f32 load_f16(const u16* p) { f32 r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(*p)); return r; }
DEVICE void store_f16(u16* p, f32 v) { u16 r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v)); *p = r; }
DEVICE f32 load_bf16(const u16* p) { return __uint_as_float((u32)*p << 16); }
DEVICE void store_bf16(u16* p, f32 v) { u16 r; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(v)); *p = r; }

// Bits are sign, exponent, mantissa; `overflow` is the code of what is too large.
template <int exponent_bits, int mantissa_bits, u32 largest, u32 overflow, u32 nan>
struct SmallFloat {
  static constexpr u32 sign = 1u << (exponent_bits + mantissa_bits);
  static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  DEVICE f32 decode(u32 code) {
    const u32 magnitude = code & (sign - 1), negative = (code & sign) ? 0x80000000u : 0;
    if (magnitude > largest)
      return __uint_as_float(negative | (magnitude == overflow ? 0x7f800000u : 0x7fc00000u));
    const int exponent = magnitude >> mantissa_bits;
    const u32 mantissa = magnitude & ((1u << mantissa_bits) - 1);
    if (exponent == 0) {  // a multiple of the smallest value, exact in f32
      const f32 unit = __uint_as_float((u32)(127 + 1 - bias - mantissa_bits) << 23);
      return __uint_as_float(__float_as_uint((f32)mantissa * unit) | negative);
    }
    return __uint_as_float(negative | (u32)(exponent - bias + 127) << 23 | mantissa << (23 - mantissa_bits));
  }
  DEVICE u32 encode(f32 value) {
    const u32 bits = __float_as_uint(value), negative = bits >> 31 ? sign : 0, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return negative | nan;
    if (magnitude == 0x7f800000u) return negative | overflow;
    const int stored = magnitude >> 23, exponent = (stored > 1 ? stored : 1) - 127, least = 1 - bias;
    const u32 significand = (magnitude & 0x7fffffu) | (stored ? 0x800000u : 0);
    const int shift = 23 - mantissa_bits + (least > exponent ? least - exponent : 0);
    if (shift > 24) return negative;
    const u32 rounded = (significand + (1u << (shift - 1)) - 1 + ((significand >> shift) & 1)) >> shift;
    const u32 code = ((u32)((exponent > least ? exponent : least) - least) << mantissa_bits) + rounded;
    return negative | (code > largest ? overflow : code);
  }
};
typedef SmallFloat<4, 3, 0x7E, 0x7E, 0x7F> E4M3;
typedef SmallFloat<5, 2, 0x7B, 0x7C, 0x7F> E5M2;
DEVICE f32 load_e4m3(const u8* p) { return E4M3::decode(*p); }
DEVICE void store_e4m3(u8* p, f32 v) { *p = (u8)E4M3::encode(v); }
DEVICE f32 load_e5m2(const u8* p) { return E5M2::decode(*p); }
DEVICE void store_e5m2(u8* p, f32 v) { *p = (u8)E5M2::encode(v); }

// Neighbours as they are in memory, in pieces of up to 16 bytes where they are aligned to their size. They are
// converted apart, where they are used, so that all loads of a thread are on their way together.
template <int wide> struct __align__(2 * wide) Halves { u16 each[wide]; };
template <int wide> struct __align__(wide < 4 ? 4 * wide : 16) Floats { f32 each[wide]; };
template <int wide> DEVICE void load_row(Halves<wide>& row, const u16* p) {
  if (((u64)p & (2 * wide - 1)) == 0) row = *(const Halves<wide>*)p;
  else
    #pragma unroll
    for (int k = 0; k < wide; ++k) row.each[k] = p[k];
}
template <int wide> DEVICE void load_row(Floats<wide>& row, const f32* p) {
  if (((u64)p & (sizeof(row) - 1) & 15) == 0) row = *(const Floats<wide>*)p;
  else
    #pragma unroll
    for (int k = 0; k < wide; ++k) row.each[k] = p[k];
}
template <bool bf16, int wide> DEVICE f32 number_of(const Halves<wide>& row, int k) { return bf16 ? load_bf16(&row.each[k]) : load_f16(&row.each[k]); }
template <bool, int wide> DEVICE f32 number_of(const Floats<wide>& row, int k) { return row.each[k]; }
template <bool, int wide> DEVICE void store_row(f32* p, const f32 (&v)[wide]) {
  Floats<wide> floats;
  #pragma unroll
  for (int k = 0; k < wide; ++k) floats.each[k] = v[k];
  if (((u64)p & (sizeof(floats) - 1) & 15) == 0) *(Floats<wide>*)p = floats;
  else for (int k = 0; k < wide; ++k) p[k] = v[k];
}
template <bool bf16, int wide> DEVICE void store_row(u16* p, const f32 (&v)[wide]) {
  Halves<wide> halves;
  #pragma unroll
  for (int k = 0; k < wide; ++k)
    if (bf16) store_bf16(&halves.each[k], v[k]);
    else store_f16(&halves.each[k], v[k]);
  if (((u64)p & (2 * wide - 1)) == 0) *(Halves<wide>*)p = halves;
  else for (int k = 0; k < wide; ++k) p[k] = halves.each[k];
}

// ---- Scalar semantics of Loop IR (loops/kernel.h) ----
template <class T> struct Unsigned { typedef T type; };
template <> struct Unsigned<i32> { typedef u32 type; };
template <> struct Unsigned<i64> { typedef u64 type; };
template <class T> DEVICE T add_(T a, T b) { typedef typename Unsigned<T>::type U; return (T)((U)a + (U)b); }
template <class T> DEVICE T subtract_(T a, T b) { typedef typename Unsigned<T>::type U; return (T)((U)a - (U)b); }
template <class T> DEVICE T multiply_(T a, T b) { typedef typename Unsigned<T>::type U; return (T)((U)a * (U)b); }
DEVICE u16 multiply_(u16 a, u16 b) { return (u16)((u32)a * (u32)b); }  // int would overflow
DEVICE f32 add_(f32 a, f32 b) { return a + b; }
DEVICE f64 add_(f64 a, f64 b) { return a + b; }
DEVICE f32 subtract_(f32 a, f32 b) { return a - b; }
DEVICE f64 subtract_(f64 a, f64 b) { return a - b; }
DEVICE f32 multiply_(f32 a, f32 b) { return a * b; }
DEVICE f64 multiply_(f64 a, f64 b) { return a * b; }
template <class T> DEVICE T negate_(T a) { return subtract_((T)0, a); }
DEVICE f32 negate_(f32 a) { return -a; }
DEVICE f64 negate_(f64 a) { return -a; }
template <class T> DEVICE T absolute_(T a) { return a < (T)0 ? negate_(a) : a; }
DEVICE f32 absolute_(f32 a) { return fabsf(a); }
DEVICE f64 absolute_(f64 a) { return fabs(a); }
template <class T> DEVICE T not_(T a) { return (T)~a; }
DEVICE bool not_(bool a) { return !a; }
DEVICE f32 sqrt_(f32 a) { return sqrtf(a); }
DEVICE f64 sqrt_(f64 a) { return sqrt(a); }
DEVICE f32 floor_(f32 a) { return floorf(a); }
DEVICE f64 floor_(f64 a) { return floor(a); }
DEVICE f32 ceil_(f32 a) { return ceilf(a); }
DEVICE f64 ceil_(f64 a) { return ceil(a); }
DEVICE f32 trunc_(f32 a) { return truncf(a); }
DEVICE f64 trunc_(f64 a) { return trunc(a); }
DEVICE f32 round_(f32 a) { return rintf(a); }
DEVICE f64 round_(f64 a) { return rint(a); }
DEVICE f32 fma_(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
DEVICE f64 fma_(f64 a, f64 b, f64 c) { return fma(a, b, c); }
DEVICE f32 fmod_(f32 a, f32 b) { return fmodf(a, b); }
DEVICE f64 fmod_(f64 a, f64 b) { return fmod(a, b); }

template <class T> struct Divide {  // integers: never traps
  static constexpr bool is_signed = (T)-1 < (T)0;
  DEVICE bool overflows(T b) { return is_signed && b == (T)-1; }
  DEVICE T quotient(T a, T b) { return b == 0 ? (T)0 : overflows(b) ? negate_(a) : (T)(a / b); }
  DEVICE T remainder(T a, T b) { return b == 0 || overflows(b) ? (T)0 : (T)(a % b); }
  DEVICE T floor(T a, T b) {
    const T q = quotient(a, b), r = remainder(a, b);
    return is_signed && r != 0 && (r < 0) != (b < 0) ? (T)(q - 1) : q;
  }
  DEVICE T modulo(T a, T b) {
    const T r = remainder(a, b);
    return is_signed && r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;
  }
};
template <class T> struct DivideReal {
  DEVICE T quotient(T a, T b) { return a / b; }
  DEVICE T remainder(T a, T b) { return fmod_(a, b); }
  DEVICE T floor(T a, T b) {  // as torch: from fmod, corrected by one where rounding moved it
    if (b == 0) return a / b;
    const T r = fmod_(a, b);
    T q = (a - r) / b;
    if (r != 0 && (b < 0) != (r < 0)) q -= 1;
    if (q == 0) return a / b < 0 || (a / b == 0 && 1 / (a / b) < 0) ? -(T)0 : (T)0;
    const T floored = floor_(q);
    return q - floored > (T)0.5 ? floored + 1 : floored;
  }
  DEVICE T modulo(T a, T b) {
    const T r = fmod_(a, b);
    return r != 0 && (b < 0) != (r < 0) ? r + b : r;
  }
};
template <> struct Divide<f32> : DivideReal<f32> {};
template <> struct Divide<f64> : DivideReal<f64> {};

template <class T> DEVICE T maximum_(T a, T b) { return a < b ? b : a; }
template <class T> DEVICE T minimum_(T a, T b) { return a < b ? a : b; }
DEVICE f32 maximum_(f32 a, f32 b) { return a != a || b != b ? __uint_as_float(0x7fc00000u) : a > b ? a : b; }
DEVICE f32 minimum_(f32 a, f32 b) { return a != a || b != b ? __uint_as_float(0x7fc00000u) : a < b ? a : b; }
DEVICE f64 maximum_(f64 a, f64 b) { return a != a || b != b ? __longlong_as_double(0x7ff8000000000000ll) : a > b ? a : b; }
DEVICE f64 minimum_(f64 a, f64 b) { return a != a || b != b ? __longlong_as_double(0x7ff8000000000000ll) : a < b ? a : b; }
template <class T> DEVICE T power_(T base, T exponent) {
  if (exponent < 0) return base == 1 ? (T)1 : base == (T)-1 ? (exponent % 2 == 0 ? (T)1 : (T)-1) : (T)0;
  u64 result = 1, factor = (u64)base;
  for (u64 left = (u64)exponent; left != 0; left >>= 1, factor *= factor) if (left & 1) result *= factor;
  return (T)result;
}

// Out of range is saturated, NaN is 0. `low` and `high` are exact: the first values beyond the range are
// -2^(width-1) - 1 and 2^(width-1) (2^width).
template <class To, class From> DEVICE To to_integer(From v) {
  constexpr bool is_signed = (To)-1 < (To)0;
  constexpr int width = 8 * sizeof(To);
  const From high = is_signed ? (From)(1ull << (width - 2)) * 2 : (From)(1ull << (width - 1)) * 2;
  const To most = is_signed ? (To)((1ull << (width - 1)) - 1) : (To)~0ull;
  if (v != v) return 0;
  v = trunc_(v);
  if (v >= high) return most;
  if (is_signed ? v < -high : v < 0) return is_signed ? (To)(1ull << (width - 1)) : (To)0;
  return (To)v;
}

// ---- Indices ----
template <class T> DEVICE T floor_divide(T a, T b) { const T q = a / b; return q - (a % b != 0 && ((a < 0) != (b < 0))); }
template <class T> DEVICE T floor_modulo(T a, T b) { const T r = a % b; return r != 0 && ((r < 0) != (b < 0)) ? r + b : r; }
template <class T> DEVICE T most(T a, T b) { return a > b ? a : b; }
template <class T> DEVICE T least(T a, T b) { return a < b ? a : b; }

// ---- Reductions: the order is fixed, so that results do not depend on timing ----
struct Add { template <class T> DEVICE T apply(T a, T b) { return add_(a, b); } };
struct Multiply { template <class T> DEVICE T apply(T a, T b) { return multiply_(a, b); } };
struct Maximum { template <class T> DEVICE T apply(T a, T b) { return maximum_(a, b); } };
struct Minimum { template <class T> DEVICE T apply(T a, T b) { return minimum_(a, b); } };
struct And { template <class T> DEVICE T apply(T a, T b) { return (T)(a & b); } };
struct Or { template <class T> DEVICE T apply(T a, T b) { return (T)(a | b); } };
template <class T> struct Shuffle {  // narrow integers travel as i32
  DEVICE T exchange(T v, int mask) { return (T)__shfl_xor_sync(~0u, (i32)v, mask); }
  DEVICE T from(T v, int lane) { return (T)__shfl_sync(~0u, (i32)v, lane); }
  DEVICE T before(T v, int distance) { return (T)__shfl_up_sync(~0u, (i32)v, distance); }
};
template <class T> struct ShuffleWhole {
  DEVICE T exchange(T v, int mask) { return __shfl_xor_sync(~0u, v, mask); }
  DEVICE T from(T v, int lane) { return __shfl_sync(~0u, v, lane); }
  DEVICE T before(T v, int distance) { return __shfl_up_sync(~0u, v, distance); }
};
template <> struct Shuffle<u32> : ShuffleWhole<u32> {};
template <> struct Shuffle<i64> : ShuffleWhole<i64> {};
template <> struct Shuffle<u64> : ShuffleWhole<u64> {};
template <> struct Shuffle<f32> : ShuffleWhole<f32> {};
template <> struct Shuffle<f64> : ShuffleWhole<f64> {};
// Each lane has the combination of all, with some pairs the other way round.
template <class Op, class T> DEVICE T exchange_all(T v) {
  for (int mask = 16; mask > 0; mask >>= 1) v = Op::apply(v, Shuffle<T>::exchange(v, mask));
  return v;
}
template <class Op, class T> DEVICE T reduce_warp(T v) { return Shuffle<T>::from(exchange_all<Op>(v), 0); }
DEVICE f32 sum_of_warp(f32 v) { return exchange_all<Add>(v); }  // the same bits in each lane
template <class Op, class T, int group> DEVICE T reduce_group(T v) {
  v = reduce_warp<Op>(v);
  if (group == 32) return v;
  __shared__ T slots[group / 32];
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = v;
  __syncthreads();
  v = slots[0];
  for (int i = 1; i < group / 32; ++i) v = Op::apply(v, slots[i]);
  __syncthreads();
  return v;
}
// Lane i gets the combination of lanes 0..i.
template <class Op, class T> DEVICE T scan_warp(T v, int lane) {
  for (int distance = 1; distance < 32; distance <<= 1) {
    const T other = Shuffle<T>::before(v, distance);
    if (lane >= distance) v = Op::apply(other, v);
  }
  return v;
}
template <int group> DEVICE void synchronize() { if (group == 32) __syncwarp(); else if (group > 32) __syncthreads(); }
)cuda";

}  // namespace

std::string prelude() { return std::string(kPrelude) + std::string(half_functions_text()); }

}  // namespace ingot::core::cuda
