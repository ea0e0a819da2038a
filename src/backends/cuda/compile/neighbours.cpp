// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/neighbours.h"

#include <algorithm>

#include "backends/cuda/compile/expression_text.h"
#include "loops/index_facts.h"
#include "loops/rewrite.h"

namespace ingot::core::cuda {
namespace {

using loops::ExprNode;
using loops::Kernel;
using loops::Loop;
using loops::Stage;

constexpr int64_t kManyPoints = 1 << 18;  // with fewer, more threads are worth more than wider ones

const loops::Buffer& buffer_of(const Kernel& kernel, int number) {
  return kernel.buffers[static_cast<size_t>(number)];
}

Dim offset_in(const loops::Buffer& buffer, std::span<const Dim> index) {
  return storage_offset(buffer.type.layout, buffer.type.shape, index);
}

}  // namespace

bool are_in_vectors(const loops::Buffer& buffer, std::span<const Dim> index, const std::string& variable) {
  const DType dtype = buffer.type.dtype;
  const auto stride = loops::stride_along(offset_in(buffer, index), variable);
  return (is_half(dtype) || dtype == DType::kF32) && stride && *stride == Dim(1);
}

std::vector<Loop> loops_of(const Kernel& kernel, const Stage& stage) {
  std::vector<Loop> loops = kernel.parallel;
  loops.insert(loops.end(), stage.loops.begin(), stage.loops.end());
  return loops;
}

int neighbours_of(const Kernel& kernel, const Stage& stage) {
  const std::vector<Loop> loops = loops_of(kernel, stage);
  if (loops.empty()) return 1;
  const Loop& inner = loops.back();
  const loops::Buffer& stored = buffer_of(kernel, stage.store->buffer);
  const auto extent = inner.extent.constant();
  if (!extent || !are_in_vectors(stored, stage.store->index, inner.variable)) return 1;
  const bool is_bound = std::ranges::any_of(stage.bindings, [&](const loops::Binding& binding) {
    return loops::uses_symbol(binding.value, inner.variable);
  });
  if (is_bound || range_of(product(loops::extents_of(loops)), kernel.symbols).min < kManyPoints) return 1;
  int wide = is_half(stored.type.dtype) ? 8 : 4;
  while (*extent % wide != 0) wide /= 2;
  return wide;
}

Dim points_of(const Kernel& kernel, const Stage& stage, int neighbours) {
  std::vector<Dim> extents = loops::extents_of(loops_of(kernel, stage));
  if (neighbours > 1) extents.back() = Dim(*extents.back().constant() / neighbours);
  return product(extents);
}

std::vector<NeighbourLoad> neighbour_loads(const Kernel& kernel, const Stage& stage, const Loop& loop,
                                           const IndexScope& scope) {
  std::vector<NeighbourLoad> loads;
  loops::visit(stage.value, [&](const loops::Expr& node) {
    if (node->kind != ExprNode::Kind::kLoad) return;
    const loops::Buffer& buffer = buffer_of(kernel, node->buffer);
    if (buffer.access != loops::Access::kRead || !are_in_vectors(buffer, node->index, loop.variable) ||
        !is_in_bounds(*node, buffer.type.shape, scope))
      return;
    const Dim offset = offset_in(buffer, node->index);
    const auto same = [&](const NeighbourLoad& load) {
      return load.buffer == node->buffer && load.offset == offset;
    };
    auto found = std::ranges::find_if(loads, same);
    if (found == loads.end()) found = loads.insert(loads.end(), {node->buffer, offset, {}});
    found->nodes.push_back(node.get());
  });
  return loads;
}

}  // namespace ingot::core::cuda
