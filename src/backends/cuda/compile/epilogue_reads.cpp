// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/epilogue_reads.h"

#include <algorithm>
#include <optional>

#include "backends/cuda/compile/tensor_core_types.h"
#include "loops/rewrite.h"

namespace ingot::core::cuda {
namespace {

using Index = std::vector<Dim>;

bool is_in_bounds(const loops::Kernel& epilogue, const Dim& index, const Dim& extent) {
  if (index.is_constant()) return index == Dim(0) && range_of(extent, epilogue.symbols).min > 0;
  return std::ranges::any_of(epilogue.parallel, [&](const loops::Loop& loop) {
    return index == Dim::symbol(loop.variable) && loop.extent == extent;
  });
}

// The index of all loads of a buffer, if it is one and in its bounds.
std::optional<Index> index_read(const loops::Kernel& epilogue, size_t number) {
  std::optional<Index> index;
  bool one = true;
  for (const loops::Stage& stage : epilogue.stages) {
    one = one && stage.bindings.empty();
    loops::visit(stage.value, [&](const loops::Expr& node) {
      if (node->kind != loops::ExprNode::Kind::kLoad || node->buffer != static_cast<int>(number)) return;
      const Index own(node->index.begin(), node->index.end());
      one = one && (!index || *index == own);
      index = own;
    });
  }
  if (!one || !index) return std::nullopt;
  for (size_t dim = 0; dim < index->size(); ++dim) {
    if (!is_in_bounds(epilogue, (*index)[dim], epilogue.buffers[number].type.shape[dim])) return std::nullopt;
  }
  return index;
}

}  // namespace

EpilogueReads epilogue_reads(const loops::Kernel& epilogue, const Dim& column, int wide,
                             const std::function<bool(size_t buffer)>& is_given) {
  EpilogueReads reads;
  for (size_t i = 1; i < epilogue.buffers.size(); ++i) {
    if (is_given(i)) continue;
    const loops::Buffer& buffer = epilogue.buffers[i];
    const auto index = index_read(epilogue, i);
    if (!index) continue;
    const auto columns = std::ranges::count(*index, column);
    if (columns == 1 && are_neighbours(buffer, *index, column, wide))
      reads.wide.push_back({i, *index});
    else if (columns == 0 && buffer.type.dtype == DType::kF32)
      reads.of_row.push_back({i, *index});
  }
  return reads;
}

bool are_neighbours(const loops::Buffer& buffer, const Index& index, const Dim& column, int wide) {
  const Layout& layout = buffer.type.layout;
  if (!has_tensor_cores(buffer.type.dtype) || index.empty()) return false;
  if (layout.is_row_major()) return index.back() == column;
  const LayoutAxis& inner = layout.axes.back();
  return index[static_cast<size_t>(inner.dim)] == column && inner.divisor == 1 && inner.modulus % wide == 0;
}

bool is_multiple_of_eight(const Dim& place, const Dim& column) {
  const auto operands = place.operands();
  const auto is_own = [&](const Dim& operand) { return is_multiple_of_eight(operand, column); };
  switch (place.kind()) {
    case Dim::Kind::kConstant:
      return *place.constant() % kEight == 0;
    case Dim::Kind::kSymbol:
      return place == column;
    case Dim::Kind::kMultiply:
      return std::ranges::any_of(operands, is_own);
    case Dim::Kind::kAdd:
    case Dim::Kind::kModulo:
      return std::ranges::all_of(operands, is_own);
    default:
      return false;
  }
}

}  // namespace ingot::core::cuda
