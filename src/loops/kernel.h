// SPDX-License-Identifier: Apache-2.0
// Loop IR: loads, scalar expressions, reductions and stores over an index space. Shared by the interpreter,
// the CPU backend and the CUDA backend, and free of target details.
//
// A kernel runs its stages in order for each point of its parallel loops. A stage computes `value` for each
// point of its own loops (reduced over `reduce`), and stores it to a buffer, a local row, or a local scalar.
// Points of the parallel loops are independent of each other.
//
// Indices are Dims over shape symbols, loop variables, and symbols that a binding reads from data. They index
// logical elements: the emitter applies each buffer's layout.
//
// Scalar semantics follow torch. Integers wrap; integer division by zero yields 0 and does not trap;
// floor_divide and modulo round towards minus infinity, divide of integers truncates; shifts are defined for
// 0 <= amount < width. Floats are IEEE 754 with round to nearest even, never flushed to zero. f16, bf16 and
// fp8 are widened to f32 by load and rounded by store: all arithmetic is in f32, f64, bool or integers.
// maximum and minimum return NaN if either operand is NaN. Sums of f32 may be reordered. `select` is lazy:
// loads in the other arm are not performed, so a guard may protect their address.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loops/operators.h"
#include "types/tensor_type.h"

namespace ingot::core::loops {

struct Function;  // of one scalar, such as exp: a record, see loops/functions.h
struct ExprNode;
using Expr = std::shared_ptr<const ExprNode>;  // immutable; shared subexpressions are computed once

struct ExprNode {
  enum class Kind {
    kConstant,  // `integer` for bool and integers, else `number`
    kIndex,     // value of `index[0]`, i64
    kLoad,      // buffers[buffer][index...]
    kLocal,     // result of stage `stage` at `index` (empty for a scalar)
    kUnary,
    kFunction,  // of operand 0, float; replaced by expand_math before code is emitted
    kBinary,
    kSelect,   // operands: condition, then, otherwise; `integer` is 1 if made by rarely
    kConvert,  // to `dtype`; float to integer truncates and saturates, NaN becomes 0
    kBitcast,  // same width
    kFma,      // operands a, b, c: a * b + c rounded once
  };
  Kind kind;
  DType dtype;  // of the result
  double number = 0;
  int64_t integer = 0;
  Unary unary{};
  const Function* function = nullptr;
  Binary binary{};
  int buffer = -1;
  int stage = -1;
  std::vector<Dim> index;
  std::vector<Expr> operands;
};

Expr constant(DType dtype, double value);
Expr integer_constant(DType dtype, int64_t value);
Expr index_value(Dim index);
// dtype of the result: arithmetic_dtype(stored)
Expr load(int buffer, DType stored, std::vector<Dim> index);
Expr local(int stage, DType dtype, std::vector<Dim> index = {});
Expr unary(Unary op, Expr a);
Expr binary(Binary op, Expr a, Expr b);  // dtypes must be equal
Expr select(Expr condition, Expr then, Expr otherwise);
Expr convert(DType dtype, Expr a);  // returns `a` if it has that dtype
Expr bitcast(DType dtype, Expr a);
Expr fma(Expr a, Expr b, Expr c);
DType arithmetic_dtype(DType stored);  // f32 for f16, bf16, e4m3, e5m2; i8/u8 for int4/uint4; else itself

struct Loop {
  std::string variable;
  Dim extent;
};

// Inside the stage's body, `symbol` is the value of an i64 expression, which must be in [0, limit): otherwise
// the kernel uses 0 and reports kIndexOutOfRange.
struct Binding {
  std::string symbol;
  Expr value;
  Dim limit;
};

struct Store {
  int buffer;
  std::vector<Dim> index;
};

struct Stage {
  std::string name;                  // of the local row or scalar; only for messages if the stage stores
  std::vector<Loop> loops;           // independent points; empty: one value
  std::vector<Loop> reduce;          // reduced by `combine`
  Combine combine = Combine::kNone;  // kNone exactly if there is neither `reduce` nor `scan`
  bool scan = false;  // the last of `loops` runs in order; point j holds the combination of points 0..j
  std::vector<Binding> bindings;  // in order; may use loop variables and earlier symbols
  Expr value;
  std::optional<Store> store;  // absent for a local row or scalar
};

enum class Access { kRead, kWrite, kReadWrite /* in place: elements not stored keep their value */ };

struct Buffer {
  std::string name;
  TensorType type;
  Access access = Access::kRead;
};

struct Kernel {
  std::string name;
  std::vector<Buffer> buffers;  // the arguments, in order
  std::vector<Loop> parallel;   // outermost first
  std::vector<Stage> stages;
  SymbolTable symbols;  // ranges of shape symbols
};

// Symbols whose values a kernel needs as arguments, sorted.
std::vector<std::string> free_symbols(const Kernel& kernel);
// Total points of the parallel loops.
Dim parallel_extent(const Kernel& kernel);
std::vector<Dim> extents_of(const std::vector<Loop>& loops);

std::string to_string(const Kernel& kernel);  // as in design: kernel name(x: f32[..]) -> y: f32[..] { ... }
// Throws InternalError: dtypes, buffer and stage numbers, index ranks, loop names.
void verify(const Kernel& kernel);

}  // namespace ingot::core::loops
