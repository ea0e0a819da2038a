// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/product_prologue.h"

#include "backends/cuda/compile/expression_text.h"
#include "backends/cuda/compile/neighbours.h"
#include "backends/cuda/compile/type_text.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

constexpr const char* kCopyRows = R"cuda(
for (int i = threadIdx.x; i < kRows * kChunks; i += {0}) {{
  const int row = i / kChunks, depth = i % kChunks * kChunk;
  bool valid = first_row + row < x.rows;
  const Element* from = a_place(x, a_source(x, batch, first_row + row, depth, valid), 0, depth, valid);
  copy_chunk(to + row * kDepth + depth, valid ? from : x.a, valid);
}}
commit_copies();
}}
)cuda";

// "const u16* p1" for each buffer that is read, by `write`.
template <typename Write>
std::string of_buffers(Prologue prologue, const Write& write) {
  std::string text;
  for (size_t i = 0; prologue != nullptr && i < prologue->buffers.size(); ++i) {
    if (prologue->buffers[i].access != loops::Access::kRead) continue;
    text += write(i, fmt::format("const {}* ", storage_name(prologue->buffers[i].type.dtype)));
  }
  return text;
}

// A thread computes kChunk neighbours at a time, which are one store to shared memory.
void write_computed_rows(const ProductShape& shape, const Node& node, const loops::Kernel& prologue,
                         int threads, TemplateText& out) {
  invariant(prologue.stages.size() == 1 && prologue.stages[0].store, "a prologue is one stage");
  const loops::Stage& stage = prologue.stages[0];
  const std::vector<loops::Loop> loops = loops_of(prologue, stage);
  IndexScope scope = out.scope;
  out.text += prologue_buffers(&prologue);
  out.line("#pragma unroll 4\nfor (int i = threadIdx.x; i < kRows * kChunks; i += {}) {{\n", threads);
  out.line("const int own = i / kChunks, first = i % kChunks * kChunk;\n");
  out.line("const idx row = least<idx>(first_row + own, x.rows - 1);\n");
  out.decode(result_extents(node, shape.row_dims), "row", "r", scope);
  for (size_t i = 0; i + 1 < loops.size(); ++i) scope.add(loops[i], fmt::format("r{}", i));
  scope.add(loops.back(), "first");
  std::vector<LocalAccess> none;
  ExpressionWriter writer(prologue, none, out.text);
  int loaded = 0;
  for (const NeighbourLoad& load : neighbour_loads(prologue, stage, loops.back(), scope)) {
    const DType dtype = prologue.buffers[static_cast<size_t>(load.buffer)].type.dtype;
    const std::string name = fmt::format("w{}", loaded++);
    out.line("{}<kChunk> {};\nload_row({}, b{} + {});\n", vector_name(dtype), name, name, load.buffer,
             scope.text(load.offset));
    for (const loops::ExprNode* read : load.nodes)
      writer.replace_node(read, fmt::format("number_of<{}>({}, j)", dtype == DType::kBF16, name));
  }
  out.line(
      "f32 values[kChunk];\n#pragma unroll\nfor (int j = 0; j < kChunk; ++j) {{\nconst int at = first + "
      "j;\n");
  IndexScope inner = scope;
  inner.add(loops.back(), "at");
  writer.begin_block();
  out.line("values[j] = {};\n}}\n", writer.value(stage.value, inner, {}));
  writer.end_block();
  out.line("store_row<kBf16>(to + own * kDepth + first, values);\n}}\n}}\n");
}

}  // namespace

void write_fill_rows(const Node& node, const ProductShape& shape, Prologue prologue, int threads,
                     TemplateText& out) {
  out.open_function("void fill_rows(Element* to, idx batch, idx first_row, const Operands& x)");
  out.line("constexpr int kChunks = kDepth / kChunk;\n");
  if (prologue == nullptr)
    out.text += fmt::format(fmt::runtime(kCopyRows), threads);
  else
    write_computed_rows(shape, node, *prologue, threads, out);
}

std::string prologue_buffers(Prologue prologue) {
  return of_buffers(prologue, [](size_t i, const std::string& type) {
    return fmt::format("{}const b{} = x.p{};\n", type, i, i);
  });
}
std::string prologue_fields(Prologue prologue) {
  return of_buffers(prologue,
                    [](size_t i, const std::string& type) { return fmt::format("{}p{}; ", type, i); });
}
std::string prologue_values(Prologue prologue) {
  return of_buffers(prologue, [](size_t i, const std::string&) { return fmt::format(", p{}", i); });
}
std::string prologue_arguments(Prologue prologue) {
  return of_buffers(prologue,
                    [](size_t i, const std::string& type) { return fmt::format("{}p{}, ", type, i); });
}

}  // namespace ingot::core::cuda
