// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/kernel_writer.h"
#include "backends/cuda/compile/neighbours.h"
#include "backends/cuda/compile/type_text.h"

namespace ingot::core::cuda {

void KernelWriter::write_flat() {
  line("for (idx point = (idx)blockIdx.x * blockDim.x + threadIdx.x; point < {}; ",
       scope_.text(result_.plan.points));
  line("point += (idx)gridDim.x * blockDim.x) {{\n");
  Dim before = 0;
  for (size_t k = 0; k < kernel_.stages.size(); ++k) {
    const Dim end = before + points_of(kernel_, kernel_.stages[k], result_.plan.neighbours[k]);
    guards_.clear();
    const bool is_last = k + 1 == kernel_.stages.size();
    line("{}{{\n", is_last ? "" : fmt::format("if (point < {}) ", scope_.text(end)));
    const std::string own = fmt::format("p{}", next_++);
    line("const idx {} = point - {};\n", own, scope_.text(before));
    write_flat_stage(k, own);
    line("{}}}\n", is_last ? "" : "continue;\n");
    before = end;
  }
  line("}}\n");
}

void KernelWriter::write_flat_stage(size_t k, const std::string& own) {
  const Stage& stage = kernel_.stages[k];
  const int wide = result_.plan.neighbours[k];
  std::vector<Loop> loops = loops_of(kernel_, stage);
  IndexScope scope = scope_;
  if (wide > 1) loops.back().extent = Dim(*loops.back().extent.constant() / wide);
  decode(loops, own, scope);
  ExpressionWriter writer(kernel_, locals_, text_);
  if (wide > 1) return write_neighbours(k, wide, scope, writer);
  bind(stage, false, scope, writer);
  finish(stage, k, writer.value(stage.value, scope, guards_), scope);
}

void KernelWriter::write_neighbours(size_t k, int wide, IndexScope& scope, ExpressionWriter& writer) {
  const Stage& stage = kernel_.stages[k];
  const Loop loop = loops_of(kernel_, stage).back();
  const std::string group = scope.names[loop.variable], first = fmt::format("at{}", next_++),
                    at = fmt::format("at{}", next_++), stored = fmt::format("w{}", next_++);
  line("const idx {} = {} * {};\n", first, group, wide);
  scope.add(loop, first);
  bind(stage, false, scope, writer);
  for (const NeighbourLoad& load : neighbour_loads(kernel_, stage, loop, scope)) {
    const DType dtype = kernel_.buffers[static_cast<size_t>(load.buffer)].type.dtype;
    const std::string name = fmt::format("w{}", next_++);
    line("{}<{}> {} = {{}};\n{}load_row({}, b{} + {});\n", vector_name(dtype), wide, name,
         condition_of(load.offset), name, load.buffer, scope.text(load.offset));
    for (const loops::ExprNode* node : load.nodes)
      writer.replace_node(node, fmt::format("number_of<{}>({}, j)", dtype == DType::kBF16, name));
  }
  line("{} {}[{}];\n#pragma unroll\nfor (int j = 0; j < {}; ++j) {{\nconst idx {} = {} + j;\n",
       type_name(stage.value->dtype), stored, wide, wide, at, first);
  IndexScope inner = scope;
  inner.add(loop, at);
  writer.begin_block();
  line("{}[j] = {};\n}}\n", stored, writer.value(stage.value, inner, guards_));
  writer.end_block();
  const loops::Buffer& buffer = kernel_.buffers[static_cast<size_t>(stage.store->buffer)];
  const Dim offset = storage_offset(buffer.type.layout, buffer.type.shape, stage.store->index);
  line("{}store_row<{}>(b{} + {}, {});\n", condition_of(offset), buffer.type.dtype == DType::kBF16,
       stage.store->buffer, scope.text(offset), stored);
}

}  // namespace ingot::core::cuda
