// SPDX-License-Identifier: Apache-2.0
// Building expressions, and facts about kernels.
#include "loops/kernel.h"

#include <fmt/core.h>

#include "loops/scalar.h"
#include "support/error.h"

namespace ingot::core::loops {
namespace {

Expr make(ExprNode node) { return std::make_shared<const ExprNode>(std::move(node)); }

bool is_comparison(Binary op) { return op >= Binary::kEqual; }

bool is_logical(Binary op) { return op == Binary::kAnd || op == Binary::kOr || op == Binary::kXor; }

bool works_on_integers(Unary op) {
  return op == Unary::kNegate || op == Unary::kAbsolute || op == Unary::kNot;
}

}  // namespace

DType arithmetic_dtype(DType stored) {
  switch (stored) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kE4M3:
    case DType::kE5M2:
      return DType::kF32;
    case DType::kI4:
      return DType::kI8;
    case DType::kU4:
      return DType::kU8;
    default:
      return stored;
  }
}

Expr constant(DType dtype, double value) {
  dtype = arithmetic_dtype(dtype);
  if (!is_floating(dtype))
    return integer_constant(dtype, convert_scalar({.number = value}, DType::kF64, dtype).integer);
  return make({.kind = ExprNode::Kind::kConstant, .dtype = dtype, .number = round_to(dtype, value)});
}

Expr integer_constant(DType dtype, int64_t value) {
  dtype = arithmetic_dtype(dtype);
  if (is_floating(dtype)) return constant(dtype, static_cast<double>(value));
  return make({.kind = ExprNode::Kind::kConstant, .dtype = dtype, .integer = wrap_to(dtype, value)});
}

Expr index_value(Dim index) {
  return make({.kind = ExprNode::Kind::kIndex, .dtype = DType::kI64, .index = {std::move(index)}});
}

Expr load(int buffer, DType stored, std::vector<Dim> index) {
  return make({.kind = ExprNode::Kind::kLoad,
               .dtype = arithmetic_dtype(stored),
               .buffer = buffer,
               .index = std::move(index)});
}

Expr local(int stage, DType dtype, std::vector<Dim> index) {
  return make({.kind = ExprNode::Kind::kLocal, .dtype = dtype, .stage = stage, .index = std::move(index)});
}

Expr unary(Unary op, Expr a) {
  const DType dtype = a->dtype;
  if (op == Unary::kNot) {
    invariant(!is_floating(dtype), "'not' requires a bool or an integer");
  } else {
    invariant(dtype != DType::kBool && (is_floating(dtype) || works_on_integers(op)),
              fmt::format("unary operation {} does not work on {}", static_cast<int>(op), core::name(dtype)));
  }
  return make({.kind = ExprNode::Kind::kUnary, .dtype = dtype, .unary = op, .operands = {std::move(a)}});
}

Expr binary(Binary op, Expr a, Expr b) {
  const DType dtype = a->dtype;
  invariant(dtype == b->dtype, fmt::format("operands of binary operation {} are {} and {}",
                                           static_cast<int>(op), core::name(dtype), core::name(b->dtype)));
  if (is_logical(op)) invariant(!is_floating(dtype), "logical operations require bools or integers");
  if (op == Binary::kShiftLeft || op == Binary::kShiftRight)
    invariant(is_integer(dtype), "shifts require integers");
  if (dtype == DType::kBool) invariant(is_logical(op) || is_comparison(op), "bools have no arithmetic");
  if (op == Binary::kAtan2) invariant(is_floating(dtype), "atan2 needs floats");
  return make({.kind = ExprNode::Kind::kBinary,
               .dtype = is_comparison(op) ? DType::kBool : dtype,
               .binary = op,
               .operands = {std::move(a), std::move(b)}});
}

Expr select(Expr condition, Expr then, Expr otherwise) {
  invariant(condition->dtype == DType::kBool, "the condition of select must be a bool");
  invariant(then->dtype == otherwise->dtype, "both arms of select must have the same dtype");
  const DType dtype = then->dtype;
  return make({.kind = ExprNode::Kind::kSelect,
               .dtype = dtype,
               .operands = {std::move(condition), std::move(then), std::move(otherwise)}});
}

Expr convert(DType dtype, Expr a) {
  dtype = arithmetic_dtype(dtype);
  if (a->dtype == dtype) return a;
  return make({.kind = ExprNode::Kind::kConvert, .dtype = dtype, .operands = {std::move(a)}});
}

Expr bitcast(DType dtype, Expr a) {
  invariant(bit_width(dtype) == bit_width(a->dtype), "a bitcast must keep the width");
  if (a->dtype == dtype) return a;
  return make({.kind = ExprNode::Kind::kBitcast, .dtype = dtype, .operands = {std::move(a)}});
}

Expr fma(Expr a, Expr b, Expr c) {
  const DType dtype = a->dtype;
  invariant(is_floating(dtype) && b->dtype == dtype && c->dtype == dtype,
            "fma needs three floats of one dtype");
  return make(
      {.kind = ExprNode::Kind::kFma, .dtype = dtype, .operands = {std::move(a), std::move(b), std::move(c)}});
}

Dim parallel_extent(const Kernel& kernel) { return product(extents_of(kernel.parallel)); }

std::vector<Dim> extents_of(const std::vector<Loop>& loops) {
  std::vector<Dim> extents;
  for (const Loop& loop : loops) extents.push_back(loop.extent);
  return extents;
}

}  // namespace ingot::core::loops
