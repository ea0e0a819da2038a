// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/contraction.h"

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
#include "ops/row_moments.h"

namespace ingot::core::cuda {
namespace {

constexpr int64_t kAlignment = 16;  // of what lies behind a form's shared memory

class ContractionWriter {
 public:
  ContractionWriter(const ContractionSite& site, loops::Kernel epilogue, const ProductTactic& tactic)
      : node_(site.node),
        twin_(site.twin),
        b_is_weight_(site.b_is_weight),
        columns_are_weights_(site.columns_are_weights),
        norms_(site.norms),
        epilogue_(std::move(epilogue)),
        prologue_(expand_functions(site.prologue, site.exact_functions)),
        shape_(product_shape(node_)),
        out_(node_, kernels(), site.symbols),
        form_(product_form(node_, shape_, typical_size(node_, shape_, site.rounds_to_tf32, out_),
                           site.rounds_to_tf32, tactic)),
        has_rows_(std::holds_alternative<RowTile>(tactic.tile)) {}

  TemplateKernel write() {
    out_.line("typedef {} idx;\n", out_.wide ? "i64" : "i32");
    const DType dtype = node_.operand_type(0).dtype;
    write_element_functions(dtype, out_);
    out_.line("constexpr bool kBIsWeight = {}, kReadsElements = {};\n{}", b_is_weight_,
              epilogue_.buffers.size() > 2, form_.constants);
    out_.line("struct Operands {{ const Element *a, *b{}; idx rows, columns, depth{}; {}}};\n",
              twin_ ? ", *twin_b" : "", out_.symbol_fields(), prologue_fields(prologue()));
    write_a_places(node_, shape_, out_);
    write_b_places(node_, shape_, out_);
    if (has_rows_) out_.text += operands_of_twins(twin_);
    if (has_maps()) write_box_copies(node_, shape_, form_.persistent, out_);
    out_.text += sum_one_by_one();
    out_.text += moments_functions(node_, moments_offset());
    if (has_rows_) write_fill_rows(node_, shape_, prologue(), form_.threads, out_);
    out_.text += form_.body;
    out_.text += centering_functions(node_);
    out_.text += row_norm_functions(norms_, moments_offset());
    form_.persistent ? write_persistent_kernel() : write_kernel();
    return {.threads = form_.threads,
            .cluster = form_.splits,
            .items = items(),
            .shared_bytes =
                moments_offset() + moments_bytes(node_, form_.rows) + statistics_bytes(norms_, form_.rows),
            .maps = form_.maps,
            .symbols = out_.symbols,
            .text = std::string(tensor_core_functions()) + form_.functions + out_.text};
  }

 private:
  Prologue prologue() const { return prologue_ ? &*prologue_ : nullptr; }

  std::vector<const loops::Kernel*> kernels() const {
    if (!prologue_) return {&epilogue_};
    return {&epilogue_, &*prologue_};
  }
  bool has_maps() const { return !form_.maps.empty(); }
  EpilogueSite epilogue_site() {
    return {node_, shape_, epilogue_, norms_, form_.wide, out_, prologue(), twin_};
  }

  // Blocks of persistent kernels take several.
  Dim items() const {
    const Dim tiles =
        shape_.batch * ceil_divide(shape_.rows, form_.rows) * ceil_divide(shape_.columns, form_.columns);
    return form_.persistent ? minimum(tiles, Dim(static_cast<int64_t>(kMultiprocessors))) : tiles;
  }

  // After the form's own shared memory.
  int64_t moments_offset() const { return (form_.shared_bytes + kAlignment - 1) / kAlignment * kAlignment; }

  // Whether a thread's groups of eight all exist, and are aligned if the buffers are: their kernel looks at
  // that once. Code for both, in one stream of instructions that runs but once, takes longer to fetch than to
  // run.
  bool has_whole_groups() { return form_.persistent || has_whole_tiles(epilogue_site()); }

  void write_beginning() {
    write_signature();
    out_.declare_symbols();
    out_.line("const Operands x = {{{}, x1{}, {}, {}, {}{}{}}};\n", prologue_ ? "rows_in(shared)" : "x0",
              twin_ ? ", y1" : "", out_.scope.text(shape_.rows), out_.scope.text(shape_.columns),
              out_.scope.text(shape_.depth), out_.symbol_fields(), prologue_values(prologue()));
    out_.line(
        "const idx across = (x.columns + kColumns - 1) / kColumns, down = (x.rows + kRows - 1) / kRows;\n");
    out_.line(
        "const int share = blockIdx.x % kSplits;\nconst bool aligned = {}{}is_aligned(x1) && "
        "x.rows <= kMostRows && x.columns <= kMostRows{};\n",
        prologue_ ? "" : "is_aligned(x0) && ", twin_ ? "is_aligned(y1) && " : "",
        has_whole_groups() ? epilogue_alignment(epilogue_site()) : "");
    if (has_maps()) out_.line("Parts parts = make_parts(shared, aligned, &a_map, &b_map);\n");
    out_.line("const idx tiles = across * down * {};\n", out_.scope.text(shape_.batch));
  }

  void write_kernel() {
    write_beginning();
    out_.line("const auto take_tiles = [&](auto certain, auto kind) {{\n");
    out_.line("constexpr bool is_certain = decltype(certain)::is_certain;\n");
    out_.line("for (idx tile = blockIdx.x / kSplits; tile < tiles; tile += gridDim.x / kSplits) {{\n");
    out_.line(
        "const idx first_column = tile % across * kColumns, first_row = tile / across % down * kRows, ");
    out_.line("batch = tile / across / down;\n");
    write_epilogue_loads(epilogue_site(), columns_are_weights_);
    write_products();
    write_contraction_epilogue(epilogue_site());
    // By itself the loop would end where ptxas cannot see that a warp's threads agree: uniform registers are
    // lost.
    out_.line("const bool is_last = tile + gridDim.x / kSplits >= tiles;\nend_tile(is_last);\n");
    out_.line("if (is_last) return;\n}}\n}};\n");
    out_.line("if (aligned) take_tiles(Whole(), {}());\nelse take_tiles(Checked(), Checked());\n}}\n",
              has_whole_groups() ? "Whole" : "Checked");
  }

  void write_products() {
    out_.line(
        "if constexpr (is_certain) {{\nmultiply_tile(shared, {}share, batch, first_row, first_column, {}x, "
        "begin_epilogue, end_products);\n"
        "}} else {{\n",
        has_maps() ? "parts, " : "", has_maps() ? "&a_map, &b_map, " : "");
    out_.line("wait_for_previous();\nif (kNextWithOperands) let_next_start();\n");
    if (prologue_) out_.line("fill_rows(rows_in(shared), batch, first_row, x);\n__syncthreads();\n");
    out_.line("begin_epilogue();\nend_products();\n");
    out_.line("multiply_one_by_one(shared, share, batch, first_row, first_column, x);\n}}\n");
    if (computes_moments(node_)) {
      out_.line("finish_moments(shared, is_certain, first_row, x);\n");
      out_.line("center_far_rows(shared, first_row, first_column, x);\n");
    }
    if (const auto centered = norms_.centered())
      out_.line("center_far_rows_of_tile(shared, {}, share, first_row, first_column, x);\n", *centered);
    else if (!norms_.statistics.empty())
      out_.line("__syncthreads();\n");
  }

  // What the GPU's cache does not keep until the next row of tiles.
  bool has_large_b() const {
    constexpr int64_t kLarge = int64_t{24} << 20;
    const Dim bytes = shape_.columns * shape_.depth * Dim(bit_width(node_.operand_type(1).dtype) / 8);
    return bytes.constant().value_or(0) > kLarge;
  }

  // Row by row; with a large b in bands of rows, column by column, so that b is read once for each band.
  void write_tile_order() {
    out_.line("idx batch = 0, first_row = 0, first_column = 0;\n");
    out_.line("const auto begin_tile = [&](idx tile) {{\nbatch = tile / across / down;\n");
    if (!has_large_b()) {
      out_.line("first_row = tile / across % down * kRows;\nfirst_column = tile % across * kColumns;\n}};\n");
      return;
    }
    out_.line("constexpr int kBand = 8;\ntile -= batch * across * down;\n");
    out_.line("const idx band = tile / (kBand * across) * kBand, rows = least<idx>(kBand, down - band);\n");
    out_.line("tile -= band * across;\n");
    out_.line("first_row = (band + tile % rows) * kRows;\nfirst_column = tile / rows * kColumns;\n}};\n");
  }

  void write_persistent_kernel() {
    write_beginning();
    write_tile_order();
    write_epilogue_functions(epilogue_site());
    write_take_loads(epilogue_site());
    out_.line("if (!aligned) {{\nwait_for_previous();\n");
    out_.line("for (idx tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{\nbegin_tile(tile);\n");
    out_.line(
        "finish_one_by_one(batch, first_row, first_column, x, load_eight, take_loads, finish_eight);\n}}\n");
    out_.line("return;\n}}\nconst int count = (int)((x.depth + kDepth - 1) / kDepth);\n");
    out_.line("if (!is_multiplier()) {{\ngive_registers<kFewRegisters>();\n");
    out_.line("if (is_copier()) for (idx tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{\n");
    out_.line("begin_tile(tile);\n");
    out_.line("copy_parts(parts, 0, count, batch, first_row, first_column, &a_map, &b_map, x);\n");
    out_.line(
        "parts.used += count;\n}}\n}} else {{\ntake_registers<kManyRegisters>();\nwait_for_previous();\n");
    out_.line("int turn = 0;\nfor (idx tile = blockIdx.x; tile < tiles; tile += gridDim.x, ++turn) {{\n");
    out_.line(
        "if (!kInTurns || turn % 2 == threadIdx.x / 128) {{\nTileSums sums = {{}};\nbegin_tile(tile);\n");
    out_.line("load_first_chunks(first_row, first_column, x, load_eight);\n");
    out_.line("multiply_persistently(sums, parts, count, turn, tile + gridDim.x >= tiles);\n");
    out_.line(
        "finish_from_registers(sums, first_row, first_column, x, load_eight, take_loads, "
        "finish_eight);\n}}\n");
    out_.line("parts.used += count;\n}}\n}}\n}}\n");
  }

  void write_signature() {
    out_.line("extern \"C\" __global__ void __launch_bounds__({}{}) {} ingot_kernel(", form_.threads,
              form_.persistent ? ", 1" : "",
              form_.splits > 1 ? fmt::format("__cluster_dims__({})", form_.splits) : "");
    write_operand_arguments(epilogue_site());
    out_.line("char* scratch, i32* status{}) {{\n",
              has_maps()
                  ? ", const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map"
                  : "");
    out_.line("extern __shared__ __align__(1024) char shared[];\nif (kNextAtOnce) let_next_start();\n");
  }

  const Node& node_;
  const Twin twin_;
  const bool b_is_weight_, columns_are_weights_;
  const RowNorms& norms_;
  const loops::Kernel epilogue_;
  const std::optional<loops::Kernel> prologue_;
  const ProductShape shape_;
  TemplateText out_;
  const ProductForm form_;
  const bool has_rows_;
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
  size.products = site.twin ? 2 : 1;
  size.orders_columns =
      size.orders_columns && has_whole_eights({site.node, shape, epilogue, site.norms, kEight, text});
  GpuLimits limits = limits_of(site.architecture);
  if (site.norms.is_empty()) return rank_tactics(site.node, shape, size, limits);
  limits.shared_bytes -= statistics_bytes(site.norms, kMostTileRows) + kAlignment;
  std::vector<ProductTactic> tactics = rank_tiles_of_blocks(site.node, shape, size, limits);
  std::erase_if(tactics, [&](const ProductTactic& tactic) {
    if (std::holds_alternative<PersistentTile>(tactic.tile)) return true;
    const Tile* tile = std::get_if<Tile>(&tactic.tile);
    const bool has_others_sums = tile != nullptr && tile->splits > 1;
    return has_others_sums || (site.norms.keeps_moments && columns_of(tactic) % ops::kMomentNeighbours != 0);
  });
  return tactics;
}

}  // namespace ingot::core::cuda
