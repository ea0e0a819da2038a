// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/routine_kernels.h"

#include <algorithm>

#include "backends/cuda/compile/type_text.h"
#include "ops/ops.h"
#include "ops/sort.h"

namespace ingot::core::cuda {
namespace {

bool is_sort(const Node& node) {
  const Op* const sorts[] = {&ops::sort, &ops::top_k, &ops::median, &ops::kth_value};
  return std::ranges::find(sorts, node.op) != std::end(sorts);
}

// Those of the host's routine: other dtypes are stored as one of these, and have another order.
bool can_sort(const Node& node) {
  constexpr DType kSorted[] = {DType::kBool, DType::kU8,  DType::kI8,   DType::kI16, DType::kI32,
                               DType::kI64,  DType::kF16, DType::kBF16, DType::kF32, DType::kF64};
  return std::ranges::find(kSorted, node.operand_type(0).dtype) != std::end(kSorted);
}

// Of whole numbers the host's routine divides in its own way.
bool can_scatter(const Node& node) {
  const DType dtype = node.operand_type(0).dtype;
  if (is_floating(dtype)) return bit_width(dtype) >= 16;
  const bool is_mean =
      node.op == &ops::scatter_reduce && node.attributes<ops::ScatterReduce>().reduce == "mean";
  return (dtype == DType::kI64 || dtype == DType::kI32) && !is_mean;
}

}  // namespace

void open_routine(const Node& node, int threads, TemplateText& out) {
  out.line("extern \"C\" __global__ void __launch_bounds__({}) ingot_kernel(", threads);
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if (node.has_operand(i)) out.line("const {}* x{}, ", storage_name(node.operand_type(i).dtype), i);
  }
  for (size_t i = 0; i < node.results.size(); ++i)
    out.line("{}* y{}, ", storage_name(node.results[i]->type.dtype), i);
  for (size_t i = 0; i < out.symbols.size(); ++i) out.line("i64 a{}, ", i);
  out.line("char* scratch, i32* status) {{\nlet_next_start();\nwait_for_previous();\n");
  out.declare_symbols();
}

bool has_routine_kernel(const Node& node) {
  if (is_sort(node)) return can_sort(node);
  return node.op == &ops::nonzero || (scatter_axis(node) && can_scatter(node));
}

TemplateKernel write_routine(const Node& node, const SymbolTable& symbols) {
  if (is_sort(node)) return write_sort(node, symbols);
  return scatter_axis(node) ? write_scatter(node, symbols) : write_nonzero(node, symbols);
}

}  // namespace ingot::core::cuda
