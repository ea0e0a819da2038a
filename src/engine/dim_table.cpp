// SPDX-License-Identifier: Apache-2.0
#include "engine/dim_table.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "support/error.h"
#include "types/checked_arithmetic.h"

namespace ingot::core {
namespace {

[[noreturn]] void refuse(const char* cause) {
  throw UserError("INGOT-U205", fmt::format("a size of the engine is malformed: {}", cause));
}

PostfixOp to_postfix(Dim::Kind kind) {
  switch (kind) {
    case Dim::Kind::kConstant:
      return PostfixOp::kConstant;
    case Dim::Kind::kSymbol:
      return PostfixOp::kSymbol;
    case Dim::Kind::kAdd:
      return PostfixOp::kAdd;
    case Dim::Kind::kMultiply:
      return PostfixOp::kMultiply;
    case Dim::Kind::kFloorDivide:
      return PostfixOp::kFloorDivide;
    case Dim::Kind::kModulo:
      return PostfixOp::kModulo;
    case Dim::Kind::kMaximum:
      return PostfixOp::kMaximum;
    case Dim::Kind::kMinimum:
      return PostfixOp::kMinimum;
  }
  throw InternalError("unknown kind of dim");
}

int64_t combine(PostfixOp op, int64_t a, int64_t b) {
  switch (op) {
    case PostfixOp::kAdd:
      return checked_add(a, b);
    case PostfixOp::kMultiply:
      return checked_multiply(a, b);
    case PostfixOp::kFloorDivide:
      return checked_floor_divide(a, b);
    case PostfixOp::kModulo:
      return checked_modulo(a, b);
    case PostfixOp::kMaximum:
      return std::max(a, b);
    case PostfixOp::kMinimum:
      return std::min(a, b);
    case PostfixOp::kConstant:
    case PostfixOp::kSymbol:
      break;
  }
  throw InternalError("a constant or symbol has no operands");
}

// Products of sums expand: count their terms before computing them.
size_t term_count(const Dim& dim) { return dim.kind() == Dim::Kind::kAdd ? dim.operands().size() : 1; }

Dim combine(PostfixOp op, const Dim& a, const Dim& b) {
  constexpr size_t kMaxTerms = 256;
  const size_t terms =
      op == PostfixOp::kMultiply ? term_count(a) * term_count(b) : term_count(a) + term_count(b);
  if (terms > kMaxTerms) refuse("too many terms");
  switch (op) {
    case PostfixOp::kAdd:
      return a + b;
    case PostfixOp::kMultiply:
      return a * b;
    case PostfixOp::kFloorDivide:
      return floor_divide(a, b);
    case PostfixOp::kModulo:
      return modulo(a, b);
    case PostfixOp::kMaximum:
      return maximum(a, b);
    case PostfixOp::kMinimum:
      return minimum(a, b);
    case PostfixOp::kConstant:
    case PostfixOp::kSymbol:
      break;
  }
  refuse("unknown operation");
}

}  // namespace

uint32_t DimTable::add_symbol(const std::string& name) {
  const auto [entry, is_new] = symbol_slots_.try_emplace(name, static_cast<uint32_t>(symbols_.size()));
  if (is_new) symbols_.push_back(name);
  return entry->second;
}

uint32_t DimTable::add(const Dim& dim) {
  const auto [entry, is_new] = slots_.try_emplace(dim, static_cast<uint32_t>(size()));
  if (!is_new) return entry->second;
  append(dim, 0);
  if (items_.size() - starts_.back() > kMaxPostfixItems) {
    throw UserError("INGOT-U206", "a size has too many terms: " + dim.to_string().substr(0, 200));
  }
  starts_.push_back(items_.size());
  return entry->second;
}

// `depth`: values on the stack before `dim` is pushed.
void DimTable::append(const Dim& dim, size_t depth) {
  if (depth >= kMaxPostfixDepth) throw UserError("INGOT-U206", "a size is nested too deeply");
  if (dim.is_constant()) {
    items_.push_back({PostfixOp::kConstant, *dim.constant()});
  } else if (dim.is_symbol()) {
    items_.push_back({PostfixOp::kSymbol, add_symbol(dim.symbol_name())});
  } else {
    const auto operands = dim.operands();
    for (size_t i = 0; i < operands.size(); ++i) {
      append(operands[i], depth + (i == 0 ? 0 : 1));
      if (i > 0) items_.push_back({to_postfix(dim.kind())});
    }
  }
}

std::span<const PostfixItem> DimTable::code(uint32_t slot) const {
  return std::span(items_).subspan(starts_[slot], starts_[slot + 1] - starts_[slot]);
}

int64_t DimTable::evaluate(uint32_t slot, std::span<const int64_t> symbols) const {
  std::array<int64_t, kMaxPostfixDepth + 1> stack;
  size_t top = 0;
  for (const PostfixItem& item : code(slot)) {
    if (item.op == PostfixOp::kConstant) {
      stack[top++] = item.value;
    } else if (item.op == PostfixOp::kSymbol) {
      stack[top++] = symbols[static_cast<size_t>(item.value)];
    } else {
      --top;
      stack[top - 1] = combine(item.op, stack[top - 1], stack[top]);
    }
  }
  return stack[0];
}

Dim read_postfix(std::span<const PostfixItem> code, std::span<const std::string> symbols) {
  struct Entry {
    Dim dim;
    size_t depth = 0;  // of nested operations, which bounds recursive visitors
  };
  if (code.size() > kMaxPostfixItems) refuse("too long");
  std::vector<Entry> stack;
  for (const PostfixItem& item : code) {
    if (item.op == PostfixOp::kConstant) {
      stack.push_back({item.value});
    } else if (item.op == PostfixOp::kSymbol) {
      if (item.value < 0 || static_cast<size_t>(item.value) >= symbols.size()) refuse("unknown symbol");
      stack.push_back({Dim::symbol(symbols[static_cast<size_t>(item.value)])});
    } else {
      if (stack.size() < 2) refuse("an operation lacks operands");
      const Entry b = std::move(stack.back());
      stack.pop_back();
      Entry& a = stack.back();
      a = {combine(item.op, a.dim, b.dim), std::max(a.depth, b.depth) + 1};
    }
    if (stack.size() > kMaxPostfixDepth || stack.back().depth > kMaxPostfixDepth) refuse("nested too deeply");
  }
  if (stack.size() != 1) refuse("operands are left over");
  return stack[0].dim;
}

}  // namespace ingot::core
