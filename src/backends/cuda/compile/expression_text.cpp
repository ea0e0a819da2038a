// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/expression_text.h"

#include <algorithm>
#include <bit>

#include <fmt/core.h>

#include "backends/cuda/compile/half_functions.h"
#include "backends/cuda/compile/type_text.h"
#include "loops/rarely.h"
#include "loops/rewrite.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

using loops::Binary;
using loops::Expr;
using loops::ExprNode;
using loops::Unary;

std::string constant_text(const ExprNode& node) {
  switch (node.dtype) {
    case DType::kF32:
      return fmt::format("__uint_as_float(0x{:08x}u)",
                         std::bit_cast<uint32_t>(static_cast<float>(node.number)));
    case DType::kF64:
      return fmt::format("__longlong_as_double(0x{:016x}ll)", std::bit_cast<uint64_t>(node.number));
    case DType::kBool:
      return node.integer != 0 ? "true" : "false";
    default:
      return fmt::format("({})0x{:x}ull", type_name(node.dtype), static_cast<uint64_t>(node.integer));
  }
}

std::string_view function_of(Unary op) {
  switch (op) {
    case Unary::kNegate:
      return "negate_";
    case Unary::kAbsolute:
      return "absolute_";
    case Unary::kNot:
      return "not_";
    case Unary::kSquareRoot:
      return "sqrt_";
    case Unary::kFloor:
      return "floor_";
    case Unary::kCeil:
      return "ceil_";
    case Unary::kTruncate:
      return "trunc_";
    case Unary::kRoundEven:
      return "round_";
  }
  throw InternalError("unknown unary operation");
}

// For two operands of one type: a function of the prelude, or an operator.
struct BinaryForm {
  std::string_view function, op;
};
BinaryForm form_of(Binary op) {
  constexpr BinaryForm kForms[] = {{"add_", ""},
                                   {"subtract_", ""},
                                   {"multiply_", ""},
                                   {"Divide::quotient", ""},
                                   {"Divide::floor", ""},
                                   {"Divide::modulo", ""},
                                   {"Divide::remainder", ""},
                                   {"maximum_", ""},
                                   {"minimum_", ""},
                                   {"power_", ""},
                                   {"", ""},
                                   {"", "&"},
                                   {"", "|"},
                                   {"", "^"},
                                   {"", "<<"},
                                   {"", ">>"},
                                   {"", "=="},
                                   {"", "!="},
                                   {"", "<"},
                                   {"", "<="},
                                   {"", ">"},
                                   {"", ">="}};
  return kForms[static_cast<size_t>(op)];
}

// 32-bit integers stay 32 bits wide, signed or not.
std::string bitcast_text(DType from, DType to, const std::string& value) {
  if (from == DType::kF32) return fmt::format("({})__float_as_int({})", type_name(to), value);
  if (from == DType::kF64) return fmt::format("({})__double_as_longlong({})", type_name(to), value);
  if (to == DType::kF32) return fmt::format("__int_as_float((i32){})", value);
  if (to == DType::kF64) return fmt::format("__longlong_as_double((i64){})", value);
  return fmt::format("({}){}", type_name(to), value);
}

std::string convert_text(DType from, DType to, const std::string& value) {
  if (to == DType::kBool) return fmt::format("({} != 0)", value);
  if (is_floating(from) && !is_floating(to)) return fmt::format("to_integer<{}>({})", type_name(to), value);
  return fmt::format("({}){}", type_name(to), value);
}

bool is_cheap(const ExprNode& node) { return node.kind == ExprNode::Kind::kConstant; }

// Nodes that are computed whichever way the selects inside `expr` go.
void collect_certain(const Expr& expr, std::set<const ExprNode*>& certain) {
  if (!certain.insert(expr.get()).second) return;
  if (expr->kind == ExprNode::Kind::kSelect) return collect_certain(expr->operands[0], certain);
  for (const Expr& operand : expr->operands) collect_certain(operand, certain);
}

}  // namespace

ExpressionWriter::ExpressionWriter(const loops::Kernel& kernel, const std::vector<LocalAccess>& locals,
                                   std::string& text)
    : kernel_(kernel), locals_(locals), text_(text) {}

std::string ExpressionWriter::value(const Expr& expr, const IndexScope& scope,
                                    const std::map<std::string, std::string>& guards) {
  scope_ = &scope;
  guards_ = &guards;
  return emit(expr);
}

const std::string* ExpressionWriter::find(const ExprNode* node) const {
  for (const Block& block : blocks_) {
    if (const auto found = block.find(node); found != block.end()) return &found->second;
  }
  return nullptr;
}

// Whether `expr` still has to load something that may be out of bounds.
bool ExpressionWriter::needs_guard(const Expr& expr, std::set<const ExprNode*>& seen) const {
  if (find(expr.get()) != nullptr || !seen.insert(expr.get()).second) return false;
  if (expr->kind == ExprNode::Kind::kLocal) return true;
  if (expr->kind == ExprNode::Kind::kLoad)
    return !is_in_bounds(*expr, kernel_.buffers[static_cast<size_t>(expr->buffer)].type.shape, *scope_);
  return std::ranges::any_of(expr->operands, [&](const Expr& operand) { return needs_guard(operand, seen); });
}

std::string ExpressionWriter::define(const ExprNode& node, const std::string& text) {
  const std::string name = fmt::format("t{}", next_++);
  text_ += fmt::format("const {} {} = {};\n", type_name(node.dtype), name, text);
  return blocks_.back()[&node] = name;
}

std::string ExpressionWriter::emit(const Expr& expr) {
  const ExprNode& node = *expr;
  if (is_cheap(node)) return constant_text(node);
  if (const std::string* known = find(&node)) return *known;
  switch (node.kind) {
    case ExprNode::Kind::kIndex:
      return define(node, fmt::format("(i64){}", scope_->text(node.index[0])));
    case ExprNode::Kind::kLoad:
      if (const auto found = replaced_.find(node.buffer); found != replaced_.end()) return found->second;
      return define(node, load_text(node));
    case ExprNode::Kind::kLocal:
      return define(node, local_text(node));
    case ExprNode::Kind::kSelect:
      return select(node);
    default:
      break;
  }
  std::vector<std::string> operands;
  for (const Expr& operand : node.operands) operands.push_back(emit(operand));
  switch (node.kind) {
    case ExprNode::Kind::kUnary:
      return define(node, fmt::format("{}({})", function_of(node.unary), operands[0]));
    case ExprNode::Kind::kBinary:
      return define(node, binary_text(node));
    case ExprNode::Kind::kConvert:
      return define(node, convert_text(node.operands[0]->dtype, node.dtype, operands[0]));
    case ExprNode::Kind::kBitcast:
      return define(node, bitcast_text(node.operands[0]->dtype, node.dtype, operands[0]));
    case ExprNode::Kind::kFunction:
      return define(node, fmt::format("{}({})", half_function(*node.function), operands[0]));
    case ExprNode::Kind::kFma:
      return define(node, fmt::format("fma_({}, {}, {})", operands[0], operands[1], operands[2]));
    default:
      throw InternalError("an expression of an unknown kind");
  }
}

std::string ExpressionWriter::binary_text(const ExprNode& node) {
  const std::string a = emit(node.operands[0]), b = emit(node.operands[1]);
  const DType dtype = node.operands[0]->dtype;
  const BinaryForm form = form_of(node.binary);
  if (!form.op.empty()) return fmt::format("({})({} {} {})", type_name(node.dtype), a, form.op, b);
  if (const std::string_view rest = form.function; rest.starts_with("Divide"))
    return fmt::format("Divide<{}>{}({}, {})", type_name(dtype), rest.substr(6), a, b);
  return fmt::format("{}({}, {})", form.function, a, b);
}

// Nodes that both arms need are computed before them. If both arms load nothing unsafe, both are computed:
// no branch, unless one is rare.
std::string ExpressionWriter::select(const ExprNode& node) {
  const Expr &then = node.operands[1], &otherwise = node.operands[2];
  const std::string condition = emit(node.operands[0]);
  std::set<const ExprNode*> in_then, in_otherwise, seen;
  collect_certain(then, in_then);
  collect_certain(otherwise, in_otherwise);
  loops::visit(then, [&](const Expr& part) {
    if (in_then.contains(part.get()) && in_otherwise.contains(part.get())) emit(part);
  });
  if (!loops::is_rare(node) && !needs_guard(then, seen) && !needs_guard(otherwise, seen)) {
    const std::string a = emit(then), b = emit(otherwise);
    return define(node, fmt::format("{} ? {} : {}", condition, a, b));
  }
  const std::string name = fmt::format("t{}", next_++);
  text_ += fmt::format("{} {};\nif ({}) {{\n", type_name(node.dtype), name, condition);
  for (const Expr* arm : {&then, &otherwise}) {
    begin_block();
    const std::string value = emit(*arm);
    text_ += fmt::format("{} = {};\n{}", name, value, arm == &then ? "} else {\n" : "}\n");
    end_block();
  }
  return blocks_.back()[&node] = name;
}

std::string ExpressionWriter::load_text(const ExprNode& node) {
  const loops::Buffer& buffer = kernel_.buffers[static_cast<size_t>(node.buffer)];
  const Dim offset = storage_offset(buffer.type.layout, buffer.type.shape, node.index);
  const std::string at = scope_->text(offset), name = fmt::format("b{}", node.buffer);
  std::string text;
  switch (buffer.type.dtype) {
    case DType::kF16:
      text = fmt::format("load_f16({} + {})", name, at);
      break;
    case DType::kBF16:
      text = fmt::format("load_bf16({} + {})", name, at);
      break;
    case DType::kE4M3:
      text = fmt::format("load_e4m3({} + {})", name, at);
      break;
    case DType::kE5M2:
      text = fmt::format("load_e5m2({} + {})", name, at);
      break;
    case DType::kBool:
      text = fmt::format("({}[{}] != 0)", name, at);
      break;
    default:
      text = fmt::format("{}[{}]", name, at);
  }
  std::string guard;
  for (const std::string& symbol : offset.symbols()) {
    if (const auto found = guards_->find(symbol); found != guards_->end())
      guard += (guard.empty() ? "" : " && ") + found->second;
  }
  if (guard.empty()) return text;
  return fmt::format("({}) ? {} : ({})0", guard, text, type_name(node.dtype));
}

std::string ExpressionWriter::local_text(const ExprNode& node) {
  const LocalAccess& local = locals_[static_cast<size_t>(node.stage)];
  if (local.extents.empty()) return local.name;
  Dim offset;
  for (size_t i = 0; i < node.index.size(); ++i) offset = offset * local.extents[i] + node.index[i];
  return fmt::format("{}[{}]", local.name, scope_->text(offset));
}

bool is_in_bounds(const ExprNode& load, const Shape& shape, const IndexScope& scope) {
  for (size_t i = 0; i < load.index.size(); ++i) {
    const bool inside = range_of(load.index[i], scope.ranges).min >= 0 &&
                        provably_less(load.index[i], shape[i], scope.ranges);
    if (!inside) return false;
  }
  return true;
}

std::string store_text(const loops::Buffer& buffer, std::string_view name, const std::string& offset,
                       const std::string& value) {
  switch (buffer.type.dtype) {
    case DType::kF16:
      return fmt::format("store_f16({} + {}, {});\n", name, offset, value);
    case DType::kBF16:
      return fmt::format("store_bf16({} + {}, {});\n", name, offset, value);
    case DType::kE4M3:
      return fmt::format("store_e4m3({} + {}, {});\n", name, offset, value);
    case DType::kE5M2:
      return fmt::format("store_e5m2({} + {}, {});\n", name, offset, value);
    default:
      return fmt::format("{}[{}] = {};\n", name, offset, value);
  }
}

}  // namespace ingot::core::cuda
