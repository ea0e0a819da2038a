// SPDX-License-Identifier: Apache-2.0
#include "loops/move_bits.h"

#include <algorithm>
#include <map>
#include <set>

#include "loops/rewrite.h"
#include "types/tensor.h"

namespace ingot::core::loops {
namespace {

bool is_widened(DType dtype) { return is_floating(dtype) && arithmetic_dtype(dtype) != dtype; }

DType integer_of(DType dtype) { return bit_width(dtype) == 16 ? DType::kI16 : DType::kI8; }

int64_t bits_of(DType dtype, double value) {
  const auto real = static_cast<float>(value);
  if (dtype == DType::kF16) return float_to_half(real);
  if (dtype == DType::kBF16) return float_to_bfloat16(real);
  return dtype == DType::kE4M3 ? float_to_e4m3(real) : float_to_e5m2(real);
}

using Nodes = std::set<const ExprNode*>;

// Which only change the sign bit.
bool changes_sign(const ExprNode& value) {
  return value.kind == ExprNode::Kind::kUnary &&
         (value.unary == Unary::kNegate || value.unary == Unary::kAbsolute);
}

// `bits` with the sign bit changed by a unary operation.
Expr with_sign_changed(Unary operation, const Expr& bits) {
  const int64_t sign = int64_t{1} << (bit_width(bits->dtype) - 1);
  if (operation == Unary::kNegate) return binary(Binary::kXor, bits, integer_constant(bits->dtype, -sign));
  return binary(Binary::kAnd, bits, integer_constant(bits->dtype, sign - 1));
}

// Collects what reaches the value with all bits but the sign unchanged, through selections; false if it is
// not only loads and constants.
bool collect_moved(const Kernel& kernel, const Expr& value, DType stored, Nodes& moved) {
  if (!moved.insert(value.get()).second) return true;
  switch (value->kind) {
    case ExprNode::Kind::kConstant:
      return true;
    case ExprNode::Kind::kLoad:
      return kernel.buffers[static_cast<size_t>(value->buffer)].type.dtype == stored;
    case ExprNode::Kind::kSelect:
      return collect_moved(kernel, value->operands[1], stored, moved) &&
             collect_moved(kernel, value->operands[2], stored, moved);
    case ExprNode::Kind::kUnary:
      return changes_sign(*value) && collect_moved(kernel, value->operands[0], stored, moved);
    default:
      return false;
  }
}

// Whether the stage reads small floats only to store them as they are.
bool only_moves(const Kernel& kernel, const Stage& stage) {
  Nodes moved;
  if (stage.store) {
    const DType stored = kernel.buffers[static_cast<size_t>(stage.store->buffer)].type.dtype;
    const bool is_plain = stage.combine == Combine::kNone && !stage.scan;
    if (is_widened(stored) && !(is_plain && collect_moved(kernel, stage.value, stored, moved))) return false;
  }
  // A load that is moved must not be read by a condition too.
  bool only = true;
  const auto check = [&](const Expr& node) {
    if (node->kind != ExprNode::Kind::kLoad) return;
    only = only && !is_widened(kernel.buffers[static_cast<size_t>(node->buffer)].type.dtype);
  };
  const auto check_conditions = [&](const Expr& node) {
    if (node->kind == ExprNode::Kind::kSelect) visit(node->operands[0], check);
  };
  if (moved.empty()) {
    visit(stage.value, check);
  } else {
    visit(stage.value, check_conditions);
  }
  for (const Binding& binding : stage.bindings) visit(binding.value, check);
  return only;
}

using BitsByValue = std::map<const ExprNode*, Expr>;

Expr as_bits(const Expr& value, DType stored, BitsByValue& done) {
  if (const auto found = done.find(value.get()); found != done.end()) return found->second;
  const auto moved = [&](size_t i) { return as_bits(value->operands[i], stored, done); };
  Expr bits;
  if (value->kind == ExprNode::Kind::kConstant) {
    bits = integer_constant(integer_of(stored), bits_of(stored, value->number));
  } else if (value->kind == ExprNode::Kind::kLoad) {
    bits = load(value->buffer, integer_of(stored), value->index);
  } else if (changes_sign(*value)) {
    bits = with_sign_changed(value->unary, moved(0));
  } else {
    bits = select(value->operands[0], moved(1), moved(2));
  }
  return done[value.get()] = bits;
}

}  // namespace

Kernel move_bits(Kernel kernel) {
  const auto moves = [&](const Stage& stage) { return only_moves(kernel, stage); };
  if (!std::ranges::all_of(kernel.stages, moves)) return kernel;
  for (Stage& stage : kernel.stages) {
    if (!stage.store) continue;
    const DType stored = kernel.buffers[static_cast<size_t>(stage.store->buffer)].type.dtype;
    BitsByValue done;
    if (is_widened(stored)) stage.value = as_bits(stage.value, stored, done);
  }
  for (Buffer& buffer : kernel.buffers) {
    if (is_widened(buffer.type.dtype)) buffer.type.dtype = integer_of(buffer.type.dtype);
  }
  return kernel;
}

}  // namespace ingot::core::loops
