// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/contraction.h"

#include <array>

#include <fmt/core.h>

#include "backends/cuda/compile/contraction_epilogue.h"
#include "backends/cuda/compile/gpu_limits.h"
#include "backends/cuda/compile/half_functions.h"
#include "backends/cuda/compile/moments_text.h"
#include "backends/cuda/compile/operand_text.h"
#include "backends/cuda/compile/product_form.h"
#include "backends/cuda/compile/template_text.h"
#include "backends/cuda/compile/tensor_core_text.h"
#include "backends/cuda/compile/type_text.h"
#include "ops/normalization.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

class ContractionWriter {
 public:
  ContractionWriter(const ContractionSite& site, loops::Kernel epilogue, const ProductTactic& tactic)
      : node_(site.node),
        b_is_weight_(site.b_is_weight),
        columns_are_weights_(site.columns_are_weights),
        epilogue_(std::move(epilogue)),
        shape_(product_shape(node_)),
        out_(node_, kernels(), site.symbols),
        form_(product_form(node_, shape_, typical_size(node_, shape_, site.rounds_to_tf32, out_),
                           site.rounds_to_tf32, tactic)) {}

  TemplateKernel write() {
    out_.line("typedef {} idx;\n", out_.wide ? "i64" : "i32");
    const DType dtype = node_.operand_type(0).dtype;
    write_element_functions(dtype, out_);
    out_.line("constexpr bool kBIsWeight = {}, kReadsElements = {};\n{}", b_is_weight_,
              epilogue_.buffers.size() > 2, form_.constants);
    out_.line("struct Operands {{ const Element *a, *b; idx rows, columns, depth{}; }};\n",
              out_.symbol_fields());
    write_a_places(node_, shape_, out_);
    write_b_places(node_, shape_, out_);
    if (has_maps()) write_box_copies(node_, shape_, form_.in_turns, out_);
    out_.text += sum_one_by_one();
    out_.text += moments_functions(node_, moments_offset());
    out_.text += form_.body;
    out_.text += centering_functions(node_);
    form_.in_turns ? write_kernel_in_turns() : write_kernel();
    return {.threads = form_.threads,
            .cluster = form_.splits,
            .items = items(),
            .shared_bytes = moments_offset() + moments_bytes(node_, form_.rows),
            .maps = form_.maps,
            .symbols = out_.symbols,
            .text = std::string(tensor_core_functions()) + form_.functions + out_.text};
  }

 private:
  std::array<const loops::Kernel*, 1> kernels() const { return {&epilogue_}; }
  bool has_maps() const { return !form_.maps.empty(); }
  bool is_normalized() const { return node_.op == &ops::normalized_linear; }

  // Of tiles in turns each block has several.
  Dim items() const {
    const Dim tiles =
        shape_.batch * ceil_divide(shape_.rows, form_.rows) * ceil_divide(shape_.columns, form_.columns);
    return form_.in_turns ? minimum(tiles, Dim(static_cast<int64_t>(kMultiprocessors))) : tiles;
  }

  // After the form's own shared memory.
  int64_t moments_offset() const {
    constexpr int64_t kAlignment = 16;
    return (form_.shared_bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  void write_beginning() {
    write_signature();
    out_.declare_symbols();
    out_.line("const Operands x = {{x0, x1, {}, {}, {}{}}};\n", out_.scope.text(shape_.rows),
              out_.scope.text(shape_.columns), out_.scope.text(shape_.depth), out_.symbol_fields());
    out_.line(
        "const idx across = (x.columns + kColumns - 1) / kColumns, down = (x.rows + kRows - 1) / kRows;\n");
    out_.line(
        "const int share = blockIdx.x % kSplits;\nconst bool aligned = is_aligned(x0) && is_aligned(x1) && "
        "x.rows <= kMostRows && x.columns <= kMostRows{};\n",
        form_.in_turns ? epilogue_alignment(node_, shape_, epilogue_, out_) : "");
    if (has_maps()) out_.line("Parts parts = make_parts(shared, aligned, &a_map, &b_map);\n");
    out_.line("const idx tiles = across * down * {};\n", out_.scope.text(shape_.batch));
  }

  void write_kernel() {
    write_beginning();
    out_.line("for (idx tile = blockIdx.x / kSplits; tile < tiles; tile += gridDim.x / kSplits) {{\n");
    out_.line(
        "const idx first_column = tile % across * kColumns, first_row = tile / across % down * kRows, ");
    out_.line("batch = tile / across / down;\n");
    write_epilogue_loads(node_, shape_, epilogue_, form_.wide, columns_are_weights_, out_);
    out_.line(
        "if (aligned) {{\nmultiply_tile(shared, {}share, batch, first_row, first_column, {}x, "
        "begin_epilogue);\n"
        "}} else {{\n",
        has_maps() ? "parts, " : "", has_maps() ? "&a_map, &b_map, " : "");
    out_.line("wait_for_previous();\nif (kNextWithOperands) let_next_start();\nbegin_epilogue();\n");
    out_.line("multiply_one_by_one(shared, share, batch, first_row, first_column, x);\n}}\n");
    if (is_normalized()) {
      out_.line("finish_moments(shared, aligned, first_row, x);\n");
      out_.line("center_far_rows(shared, first_row, first_column, x);\n");
    }
    write_contraction_epilogue(node_, shape_, epilogue_, form_.wide, out_);
    out_.line("end_tile(tile + gridDim.x / kSplits >= tiles);\n}}\n}}\n");
  }

  void write_kernel_in_turns() {
    write_beginning();
    out_.line("idx batch = 0, first_row = 0, first_column = 0;\n");
    out_.line("const auto begin_tile = [&](idx tile) {{\nbatch = tile / across / down;\n");
    out_.line("first_row = tile / across % down * kRows;\nfirst_column = tile % across * kColumns;\n}};\n");
    write_epilogue_functions(node_, shape_, epilogue_, out_);
    write_take_loads(node_, shape_, epilogue_, out_);
    out_.line("if (!aligned) {{\nwait_for_previous();\n");
    out_.line("for (idx tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{\nbegin_tile(tile);\n");
    out_.line(
        "finish_one_by_one(batch, first_row, first_column, x, load_eight, take_loads, finish_eight);\n}}\n");
    out_.line("return;\n}}\nconst int count = (int)((x.depth + kDepth - 1) / kDepth);\n");
    out_.line("if (threadIdx.x >= kGroups * 128) {{\ngive_registers<40>();\n");
    out_.line(
        "for (idx tile = blockIdx.x; tile < tiles && threadIdx.x == kGroups * 128; tile += gridDim.x) {{\n");
    out_.line("begin_tile(tile);\n");
    out_.line("copy_parts(parts, 0, count, batch, first_row, first_column, &a_map, &b_map, x);\n");
    out_.line("parts.used += count;\n}}\n}} else {{\ntake_registers<232>();\nwait_for_previous();\n");
    out_.line("int turn = 0;\nfor (idx tile = blockIdx.x; tile < tiles; tile += gridDim.x, ++turn) {{\n");
    out_.line("if (turn % 2 == threadIdx.x / 128) {{\nTileSums sums = {{}};\nbegin_tile(tile);\n");
    out_.line("load_first_chunks(first_row, first_column, x, load_eight);\n");
    out_.line("multiply_in_turn(sums, parts, count, turn, tile + gridDim.x >= tiles);\n");
    out_.line(
        "finish_in_turn(sums, first_row, first_column, x, load_eight, take_loads, finish_eight);\n}}\n");
    out_.line("parts.used += count;\n}}\n}}\n}}\n");
  }

  void write_signature() {
    out_.line("extern \"C\" __global__ void __launch_bounds__({}{}) {} ingot_kernel(", form_.threads,
              form_.in_turns ? ", 1" : "",
              form_.splits > 1 ? fmt::format("__cluster_dims__({})", form_.splits) : "");
    write_operand_arguments(node_, epilogue_, out_);
    out_.line("char* scratch, i32* status{}) {{\n",
              has_maps()
                  ? ", const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map"
                  : "");
    out_.line("extern __shared__ __align__(1024) char shared[];\nif (kNextAtOnce) let_next_start();\n");
  }

  const Node& node_;
  const bool b_is_weight_, columns_are_weights_;
  const loops::Kernel epilogue_;
  const ProductShape shape_;
  TemplateText out_;
  const ProductForm form_;
};

}  // namespace

TemplateKernel write_contraction(const ContractionSite& site, const loops::Kernel& epilogue,
                                 const ProductTactic& tactic) {
  TemplateKernel kernel =
      ContractionWriter(site, expand_functions(epilogue, site.exact_functions), tactic).write();
  kernel.tactic = name(tactic);
  return kernel;
}

std::vector<ProductTactic> rank_tactics(const ContractionSite& site, const loops::Kernel& epilogue) {
  TemplateText text(site.node, {}, site.symbols);
  const ProductShape shape = product_shape(site.node);
  ProductSize size = typical_size(site.node, shape, site.rounds_to_tf32, text);
  size.orders_columns = size.orders_columns && has_whole_eights(site.node, shape, epilogue, text);
  return rank_tactics(site.node, shape, size, limits_of(site.architecture));
}

}  // namespace ingot::core::cuda
