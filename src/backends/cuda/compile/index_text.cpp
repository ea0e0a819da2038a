// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/index_text.h"

#include <algorithm>

#include <fmt/core.h>

#include "loops/rewrite.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

std::string joined(const IndexScope& scope, const Dim& dim, std::string_view separator) {
  std::string text;
  for (const Dim& operand : dim.operands()) {
    if (!text.empty()) text += separator;
    text += scope.text(operand);
  }
  return fmt::format("({})", text);
}

std::string folded(const IndexScope& scope, const Dim& dim, std::string_view function) {
  std::string text = scope.text(dim.operands()[0]);
  for (const Dim& operand : dim.operands().subspan(1)) {
    text = fmt::format("{}((idx)({}), (idx)({}))", function, text, scope.text(operand));
  }
  return text;
}

std::string quotient(const IndexScope& scope, const Dim& dim, std::string_view op,
                     std::string_view function) {
  const Dim &a = dim.operands()[0], &b = dim.operands()[1];
  if (range_of(a, scope.ranges).min >= 0 && range_of(b, scope.ranges).min > 0)
    return fmt::format("({} {} {})", scope.text(a), op, scope.text(b));
  return fmt::format("{}((idx)({}), (idx)({}))", function, scope.text(a), scope.text(b));
}

// With those of the loops' variables and of bound symbols.
SymbolTable ranges_inside(const loops::Kernel& kernel, const SymbolTable& symbols) {
  IndexScope all{.ranges = symbols, .names = {}};
  for (const loops::Loop& loop : kernel.parallel) all.add(loop, "");
  for (const loops::Stage& stage : kernel.stages) {
    for (const auto* own : {&stage.loops, &stage.reduce}) {
      for (const loops::Loop& loop : *own) all.add(loop, "");
    }
    for (const loops::Binding& binding : stage.bindings)
      all.add(binding.symbol, "", {0, std::max<int64_t>(range_of(binding.limit, symbols).max - 1, 0)});
  }
  return all.ranges;
}

}  // namespace

void IndexScope::add(const std::string& symbol, std::string identifier, DimRange range) {
  ranges[symbol].range = range;
  names[symbol] = std::move(identifier);
}

void IndexScope::add(const loops::Loop& loop, std::string identifier) {
  const int64_t extent = range_of(loop.extent, ranges).max;
  add(loop.variable, std::move(identifier),
      {0, extent == INT64_MAX ? extent : std::max<int64_t>(extent - 1, 0)});
}

std::string IndexScope::text(const Dim& dim) const {
  switch (dim.kind()) {
    case Dim::Kind::kConstant:
      return fmt::format("{}", dim.constant().value());
    case Dim::Kind::kSymbol: {
      const auto found = names.find(dim.symbol_name());
      invariant(found != names.end(), fmt::format("the symbol '{}' has no name", dim.symbol_name()));
      return found->second;
    }
    case Dim::Kind::kAdd:
      return joined(*this, dim, " + ");
    case Dim::Kind::kMultiply:
      return joined(*this, dim, " * ");
    case Dim::Kind::kFloorDivide:
      return quotient(*this, dim, "/", "floor_divide");
    case Dim::Kind::kModulo:
      return quotient(*this, dim, "%", "floor_modulo");
    case Dim::Kind::kMaximum:
      return folded(*this, dim, "most");
    case Dim::Kind::kMinimum:
      return folded(*this, dim, "least");
  }
  throw InternalError("a dim of an unknown kind");
}

bool needs_64_bits(const Dim& dim, const SymbolTable& ranges) {
  const DimRange range = range_of(dim, ranges);
  if (range.min < INT32_MIN || range.max > INT32_MAX) return true;
  return std::ranges::any_of(dim.operands(), [&](const Dim& part) { return needs_64_bits(part, ranges); });
}

bool needs_64_bits(const loops::Kernel& kernel, const SymbolTable& symbols) {
  const SymbolTable ranges = ranges_inside(kernel, symbols);
  bool wide = needs_64_bits(loops::parallel_extent(kernel), ranges);
  const auto look = [&](const Dim& dim) { wide = wide || needs_64_bits(dim, ranges); };
  for (const loops::Buffer& buffer : kernel.buffers)
    look(storage_elements(buffer.type.layout, buffer.type.shape));
  for (const loops::Stage& stage : kernel.stages) {
    loops::visit_dims(stage, look);
    look(loops::parallel_extent(kernel) * product(extents_of(stage.loops)));
    look(product(extents_of(stage.reduce)));
    const auto look_inside = [&](const loops::Expr& node) {
      for (const Dim& dim : node->index) look(dim);
      if (node->kind == loops::ExprNode::Kind::kLoad) {
        const loops::Buffer& buffer = kernel.buffers[static_cast<size_t>(node->buffer)];
        look(storage_offset(buffer.type.layout, buffer.type.shape, node->index));
      }
    };
    loops::visit(stage.value, look_inside);
    for (const loops::Binding& binding : stage.bindings) loops::visit(binding.value, look_inside);
  }
  return wide;
}

}  // namespace ingot::core::cuda
