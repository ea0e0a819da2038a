// SPDX-License-Identifier: Apache-2.0
#include "loops/move_bits.h"

#include <algorithm>
#include <map>
#include <optional>
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

// The buffer's dtype, if `value` is an element of a buffer of small floats.
std::optional<DType> small_element(const Kernel& kernel, const Expr& value) {
  if (value->kind != ExprNode::Kind::kLoad) return std::nullopt;
  const DType dtype = kernel.buffers[static_cast<size_t>(value->buffer)].type.dtype;
  return is_widened(dtype) ? std::optional(dtype) : std::nullopt;
}

// x = x or x != x of a small float.
bool asks_for_nan(const Kernel& kernel, const ExprNode& condition) {
  if (condition.kind != ExprNode::Kind::kBinary) return false;
  const bool compares = condition.binary == Binary::kEqual || condition.binary == Binary::kNotEqual;
  return compares && condition.operands[0] == condition.operands[1] &&
         small_element(kernel, condition.operands[0]).has_value();
}

// Whether the bits of a small float are negative.
bool asks_for_sign(const Kernel& kernel, const ExprNode& condition) {
  if (condition.kind != ExprNode::Kind::kBinary || condition.binary != Binary::kLess) return false;
  const Expr &bits = condition.operands[0], &zero = condition.operands[1];
  return bits->kind == ExprNode::Kind::kBitcast && zero->kind == ExprNode::Kind::kConstant &&
         zero->integer == 0 && small_element(kernel, bits->operands[0]).has_value();
}

bool joins_conditions(const ExprNode& condition) {
  if (condition.dtype != DType::kBool) return false;
  if (condition.kind == ExprNode::Kind::kUnary) return condition.unary == Unary::kNot;
  return condition.kind == ExprNode::Kind::kBinary &&
         (condition.binary == Binary::kAnd || condition.binary == Binary::kOr);
}

bool reads_small_floats(const Kernel& kernel, const Expr& value) {
  bool reads = false;
  visit(value, [&](const Expr& node) { reads = reads || small_element(kernel, node).has_value(); });
  return reads;
}

// Whether a condition asks of small floats only what their bits tell as well.
bool asks_for_bits(const Kernel& kernel, const Expr& condition) {
  if (!reads_small_floats(kernel, condition)) return true;
  if (joins_conditions(*condition))
    return std::ranges::all_of(condition->operands,
                               [&](const Expr& each) { return asks_for_bits(kernel, each); });
  return asks_for_nan(kernel, *condition) || asks_for_sign(kernel, *condition);
}

// Whether the stage reads small floats only to store them as they are.
bool only_moves(const Kernel& kernel, const Stage& stage) {
  Nodes moved;
  if (stage.store) {
    const DType stored = kernel.buffers[static_cast<size_t>(stage.store->buffer)].type.dtype;
    const bool is_plain = stage.combine == Combine::kNone && !stage.scan;
    if (is_widened(stored) && !(is_plain && collect_moved(kernel, stage.value, stored, moved))) return false;
  }
  bool only = moved.empty() ? !reads_small_floats(kernel, stage.value) : true;
  for (const ExprNode* node : moved) {
    if (node->kind == ExprNode::Kind::kSelect) only = only && asks_for_bits(kernel, node->operands[0]);
  }
  return only && std::ranges::none_of(stage.bindings, [&](const Binding& binding) {
           return reads_small_floats(kernel, binding.value);
         });
}

// The bits of infinity, or of the largest number where there is none.
int64_t largest_bits(DType dtype) {
  if (dtype == DType::kF16) return 0x7c00;
  if (dtype == DType::kBF16) return 0x7f80;
  return dtype == DType::kE4M3 ? 0x7e : 0x7c;
}

Expr load_bits(const Expr& element, DType stored) {
  return load(element->buffer, integer_of(stored), element->index);
}

// A condition that asks for bits, of integers.
Expr condition_of_bits(const Kernel& kernel, const Expr& condition) {
  if (!reads_small_floats(kernel, condition)) return condition;
  const auto inner = [&](size_t i) { return condition_of_bits(kernel, condition->operands[i]); };
  if (condition->kind == ExprNode::Kind::kUnary) return unary(condition->unary, inner(0));
  if (joins_conditions(*condition)) return binary(condition->binary, inner(0), inner(1));
  const bool is_sign = asks_for_sign(kernel, *condition);
  const Expr& element = is_sign ? condition->operands[0]->operands[0] : condition->operands[0];
  const DType stored = *small_element(kernel, element);
  const Expr bits = load_bits(element, stored);
  if (is_sign) return binary(Binary::kLess, bits, integer_constant(bits->dtype, 0));
  const auto order = condition->binary == Binary::kEqual ? Binary::kLessEqual : Binary::kGreater;
  return binary(order, with_sign_changed(Unary::kAbsolute, bits),
                integer_constant(bits->dtype, largest_bits(stored)));
}

using BitsByValue = std::map<const ExprNode*, Expr>;

Expr as_bits(const Kernel& kernel, const Expr& value, DType stored, BitsByValue& done) {
  if (const auto found = done.find(value.get()); found != done.end()) return found->second;
  const auto moved = [&](size_t i) { return as_bits(kernel, value->operands[i], stored, done); };
  Expr bits;
  if (value->kind == ExprNode::Kind::kConstant) {
    bits = integer_constant(integer_of(stored), bits_of(stored, value->number));
  } else if (value->kind == ExprNode::Kind::kLoad) {
    bits = load_bits(value, stored);
  } else if (changes_sign(*value)) {
    bits = with_sign_changed(value->unary, moved(0));
  } else {
    bits = select(condition_of_bits(kernel, value->operands[0]), moved(1), moved(2));
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
    if (is_widened(stored)) stage.value = as_bits(kernel, stage.value, stored, done);
  }
  for (Buffer& buffer : kernel.buffers) {
    if (is_widened(buffer.type.dtype)) buffer.type.dtype = integer_of(buffer.type.dtype);
  }
  return kernel;
}

}  // namespace ingot::core::loops
