// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/attention_rows.h"

#include <algorithm>

#include "backends/cuda/compile/expression_text.h"
#include "backends/cuda/compile/neighbours.h"
#include "ops/attention.h"
#include "support/error.h"

namespace ingot::core::cuda {

std::vector<ComputedRows> computed_rows(std::span<const size_t> operands, int64_t queries, int64_t new_rows,
                                        int64_t width) {
  std::vector<ComputedRows> all;
  for (const size_t operand : operands)
    all.push_back({.operand = operand,
                   .at = all.empty() ? 0 : all.back().end(),
                   .rows = operand == ops::kQuery ? queries : new_rows,
                   .width = width});
  return all;
}

std::string computed_constants(std::span<const ComputedRows> all) {
  const auto place = [&](size_t operand) -> int64_t {
    const auto found = std::ranges::find(all, operand, &ComputedRows::operand);
    return found == all.end() ? -1 : found->at;
  };
  return fmt::format(
      "constexpr int kComputedElements = {}, kQueriesAt = {}, kNewKeysAt = {}, kNewValuesAt = {};\n",
      all.empty() ? 0 : all.back().end(), place(ops::kQuery), place(ops::kNewKeys), place(ops::kNewValues));
}

void begin_computed_rows(const ComputedRows& rows, std::span<const ComputedRows> all, int threads,
                         TemplateText& out) {
  int64_t each = 1;  // elements of a thread, a divisor of each number of them
  while (all.back().end() > each * threads) each *= 2;
  const int64_t first = rows.at / each, share = (rows.end() - rows.at) / each;
  out.line("if (threadIdx.x >= {} && threadIdx.x < {}) {{\n", first, first + share);
  out.line("#pragma unroll 4\nfor (int j = 0; j < {}; ++j) {{\n", each);
  out.line("const int i = threadIdx.x - {} + j * {};\n", first, share);
  out.line("const idx row = i / {}, column = i % {};\n", rows.width, rows.width);
}

void end_computed_rows(const ComputedRows& rows, const loops::Kernel& prologue, const loops::Stage& stage,
                       const std::vector<Dim>& index, const IndexScope& scope, TemplateText& out) {
  invariant(stage.store && stage.bindings.empty() && stage.reduce.empty(), "rows are elementwise");
  IndexScope inner = scope;
  for (const loops::Loop& loop : loops_of(prologue, stage)) {
    const auto& stored = stage.store->index;
    const auto dim = std::ranges::find(stored, Dim::symbol(loop.variable)) - stored.begin();
    const bool is_stored = dim < static_cast<ptrdiff_t>(index.size());
    invariant(is_stored || loop.extent == Dim(1), "rows are stored at the indices of their loops");
    if (is_stored) out.line("const idx d{} = {};\n", dim, scope.text(index[static_cast<size_t>(dim)]));
    inner.add(loop, is_stored ? fmt::format("d{}", dim) : "0");
  }
  const std::vector<LocalAccess> none;
  ExpressionWriter writer(prologue, none, out.text);
  writer.begin_block();
  out.line("store_element(to + {} + i, {});\n}}\n}}\n", rows.at, writer.value(stage.value, inner, {}));
  writer.end_block();
}

}  // namespace ingot::core::cuda
