// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/contraction.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "backends/cuda/compile/expression_text.h"
#include "backends/cuda/compile/launch_plan.h"
#include "backends/cuda/compile/row_text.h"
#include "backends/cuda/compile/template_text.h"
#include "backends/cuda/compile/tensor_core_text.h"
#include "backends/cuda/compile/tile.h"
#include "backends/cuda/compile/type_text.h"
#include "loops/expand_math.h"
#include "loops/rewrite.h"
#include "ops/convolution.h"
#include "ops/ops.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

// Result dims by what they are to a product: its batch, its rows, and the one that counts columns.
struct Roles {
  std::vector<size_t> batch, rows;
  size_t column;
};

Roles roles_of(const Node& node) {
  const size_t rank = node.results[0]->type.rank();
  Roles roles{{}, {}, rank - 1};
  for (size_t i = 0; i < rank; ++i) {
    const bool is_convolution = node.op == &ops::convolution;
    if (is_convolution) roles.column = 1;
    if (i == roles.column) continue;
    const bool is_batch = node.op == &ops::matmul && i + 2 < rank;
    (is_batch ? roles.batch : roles.rows).push_back(i);
  }
  return roles;
}

Dim extent_of(const TensorType& type, const std::vector<size_t>& dims) {
  Dim product = 1;
  for (const size_t dim : dims) product = product * type.shape[dim];
  return product;
}

Dim depth_of(const Node& node) {
  const Shape& x = node.operand_type(0).shape;
  if (node.op != &ops::convolution) return x.back();
  const Shape& weight = node.operand_type(1).shape;
  return x[1] * weight[2] * weight[3];
}

bool is_b_depth_inner(const Node& node) {
  if (node.op != &ops::matmul) return true;
  const TensorType& b = node.operand_type(1);
  return *innermost(b) == b.rank() - 2;
}

class ContractionWriter {
 public:
  ContractionWriter(const ContractionSite& site, loops::Kernel epilogue)
      : node_(site.node),
        b_is_weight_(site.b_is_weight),
        epilogue_(std::move(epilogue)),
        roles_(roles_of(node_)),
        out_(node_, kernels(), site.symbols) {
    const TensorType& result = node_.results[0]->type;
    batch_ = extent_of(result, roles_.batch);
    rows_ = extent_of(result, roles_.rows);
    columns_ = result.shape[roles_.column];
    depth_ = depth_of(node_);
    const ProductSize size = {out_.typical(batch_), out_.typical(rows_), out_.typical(columns_),
                              out_.typical(depth_), is_b_depth_inner(node_)};
    if (node_.op != &ops::convolution) row_tile_ = row_tile(size);
    tile_ = row_tile_ ? Tile{} : rank_tiles(size, limits_of(site.architecture))[0];
  }

  TemplateKernel write() {
    out_.line("typedef {} idx;\n", out_.wide ? "i64" : "i32");
    write_constants();
    out_.line("struct Operands {{ const u16 *a, *b; idx rows, columns, depth{}; }};\n", out_.symbol_fields());
    write_a_place();
    write_b_place();
    out_.text += row_tile_ ? row_body() : contraction_body();
    write_kernel();
    TemplateKernel kernel = row_tile_ ? row_kernel(*row_tile_) : tiled_kernel();
    kernel.symbols = out_.symbols;
    kernel.text = std::string(tensor_core_functions()) + out_.text;
    return kernel;
  }

 private:
  std::array<const loops::Kernel*, 1> kernels() const { return {&epilogue_}; }

  TemplateKernel tiled_kernel() const {
    return {.threads = tile_.threads(),
            .cluster = tile_.splits,
            .items = batch_ * ceil_divide(rows_, tile_.rows) * ceil_divide(columns_, tile_.columns),
            .shared_bytes = tile_.shared_bytes(is_b_depth_inner(node_))};
  }
  TemplateKernel row_kernel(const RowTile& tile) const {
    return {.threads = tile.threads(),
            .items = batch_ * ceil_divide(rows_, tile.rows) * ceil_divide(columns_, tile.columns()),
            .shared_bytes = tile.shared_bytes(*depth_.constant())};
  }

  std::vector<Dim> dims_of(const std::vector<size_t>& dims) const {
    std::vector<Dim> extents;
    for (const size_t dim : dims) extents.push_back(node_.results[0]->type.shape[dim]);
    return extents;
  }

  void write_constants() {
    const DType dtype = node_.operand_type(0).dtype;
    const auto depth = depth_.constant();
    out_.line("constexpr bool kBf16 = {}, kBIsWeight = {};\n", dtype == DType::kBF16, b_is_weight_);
    if (row_tile_) {
      out_.line("constexpr int kRows = {}, kWarps = {}, kOwnColumns = {}, kAhead = {}, kAllDepth = {}, ",
                row_tile_->rows, RowTile::kWarps, row_tile_->own_columns, row_tile_->ahead, *depth);
      out_.line("kSplits = 1, kWide = 1;\n");
      return;
    }
    out_.line("constexpr int kRows = {}, kColumns = {}, kDepth = {}, kStages = {};\n", tile_.rows,
              tile_.columns, tile_.depth, tile_.stages);
    out_.line("constexpr int kWarpRows = {}, kWarpColumns = {}, kWarpDepths = {};\n", tile_.warp_rows,
              tile_.warp_columns, tile_.warp_depths);
    out_.line("constexpr bool kBDepthInner = {}, kWholeDepth = {};\n", is_b_depth_inner(node_),
              depth && *depth % tile_.depth == 0);
    out_.line("constexpr int kSplits = {}, kWide = 8;\n", tile_.splits);
  }

  // Where a thread copies a chunk of `a` from: what stays the same from part to part of the depth, and the
  // place for one part.
  void write_a_place() {
    if (node_.op == &ops::convolution) return write_window();
    const TensorType& type = node_.operand_type(0);
    IndexScope scope = out_.scope;
    out_.line("struct ASource {{ const u16* place; bool valid; }};\n");
    out_.open_function("ASource a_source(const Operands& x, idx batch, idx row, idx depth, bool valid)");
    std::string offset = fmt::format("row * {} + depth", scope.text(depth_));
    if (node_.op == &ops::matmul) {
      std::vector<Dim> index = batch_index(type, scope);
      index.push_back(TemplateText::named(scope, "row", rows_));
      index.push_back(TemplateText::named(scope, "depth", depth_));
      offset = scope.text(storage_offset(type.layout, type.shape, index));
    }
    out_.line("return {{valid ? x.a + {} : x.a, valid}};\n}}\n", offset);
    out_.line(
        "DEVICE const u16* a_place(const Operands& x, const ASource& from, idx first_depth, int, bool& "
        "valid) {{\n");
    out_.line("valid = valid && from.valid;\nreturn from.place + first_depth;\n}}\n");
  }

  // Of images: depth is (y, x, channel) in the window of result `row`. Where the channels of one place of the
  // window fill whole parts, all threads are at that place.
  void write_window() {
    const TensorType& type = node_.operand_type(0);
    const auto convolution = node_.attributes<ops::Convolution>();
    IndexScope scope = out_.scope;
    const auto size = [&](size_t dim) { return scope.text(type.shape[dim]); };
    out_.line("struct ASource {{ const u16* image; idx y, x; bool valid; }};\n");
    out_.open_function("ASource a_source(const Operands& x, idx batch, idx row, int, bool valid)");
    out_.decode(dims_of(roles_.rows), "row", "r", scope);
    out_.line("return {{x.a + r0 * {} * {} * {}, r1 * {} - {}, r2 * {} - {}, valid}};\n}}\n", size(2),
              size(3), size(1), convolution.stride[0], convolution.padding[0], convolution.stride[1],
              convolution.padding[1]);
    out_.open_function(
        "const u16* a_place(const Operands& x, const ASource& from, idx first_depth, int depth, bool& "
        "valid)");
    const std::string width = scope.text(node_.operand_type(1).shape[3]);
    out_.line(
        "const bool together = {} % kDepth == 0;\nconst idx at = together ? first_depth : first_depth + "
        "depth;\n",
        size(1));
    out_.line("const idx window = at / {}, channel = at % {} + (together ? depth : 0);\n", size(1), size(1));
    out_.line("const idx y = from.y + window / {} * {}, px = from.x + window % {} * {};\n", width,
              convolution.dilation[0], width, convolution.dilation[1]);
    out_.line("valid = valid && from.valid && y >= 0 && y < {} && px >= 0 && px < {};\n", size(2), size(3));
    out_.line("return from.image + (y * {} + px) * {} + channel;\n}}\n", size(3), size(1));
  }

  void write_b_place() {
    const TensorType& type = node_.operand_type(1);
    IndexScope scope = out_.scope;
    out_.open_function("const u16* b_place(const Operands& x, idx batch, idx column, idx depth)");
    std::string offset = fmt::format("column * {} + depth", scope.text(depth_)), step = "1";
    if (node_.op == &ops::matmul) {
      std::vector<Dim> index = batch_index(type, scope);
      index.push_back(TemplateText::named(scope, "depth", depth_));
      index.push_back(TemplateText::named(scope, "column", columns_));
      offset = scope.text(storage_offset(type.layout, type.shape, index));
      if (!is_b_depth_inner(node_)) step = scope.text(columns_);
    }
    out_.line("return x.b + {};\n}}\n", offset);
    out_.open_function("idx b_step(const Operands& x)");
    out_.line("return {};\n}}\n", step);
  }

  // The batch index of an operand of a product: dims of size 1 are broadcast.
  std::vector<Dim> batch_index(const TensorType& type, IndexScope& scope) {
    const std::vector<Dim> batch = out_.decode(dims_of(roles_.batch), "batch", "n", scope);
    std::vector<Dim> index;
    for (size_t i = 0; i + 2 < type.rank(); ++i)
      index.push_back(type.shape[i] == Dim(1) ? Dim(0) : batch[batch.size() + 2 - type.rank() + i]);
    return index;
  }

  void write_kernel() {
    out_.line("extern \"C\" __global__ void __launch_bounds__({}) {} ingot_kernel(",
              row_tile_ ? row_tile_->threads() : tile_.threads(),
              !row_tile_ && tile_.splits > 1 ? fmt::format("__cluster_dims__({})", tile_.splits) : "");
    for (size_t i = 0; i < node_.operands.size(); ++i) {
      if (node_.has_operand(i)) out_.line("const u16* x{}, ", i);
    }
    for (size_t i = 1; i < epilogue_.buffers.size(); ++i) {
      const loops::Buffer& buffer = epilogue_.buffers[i];
      out_.line("{}{}* b{}, ", buffer.access == loops::Access::kRead ? "const " : "",
                storage_name(buffer.type.dtype), i);
    }
    for (size_t i = 0; i < out_.symbols.size(); ++i) out_.line("i64 a{}, ", i);
    out_.line("char* scratch, i32* status) {{\nextern __shared__ __align__(128) char shared[];\n");
    out_.declare_symbols();
    out_.line("const Operands x = {{x0, x1, {}, {}, {}{}}};\n", out_.scope.text(rows_),
              out_.scope.text(columns_), out_.scope.text(depth_), out_.symbol_fields());
    out_.line(
        "const idx across = (x.columns + kColumns - 1) / kColumns, down = (x.rows + kRows - 1) / kRows;\n");
    out_.line("const int share = blockIdx.x % kSplits;\n");
    out_.line(
        "for (idx tile = blockIdx.x / kSplits; tile < across * down * {}; tile += gridDim.x / kSplits) {{\n",
        out_.scope.text(batch_));
    out_.line(
        "const idx first_column = tile % across * kColumns, first_row = tile / across % down * kRows, ");
    out_.line("batch = tile / across / down;\n");
    out_.line("if (is_aligned(x0) && is_aligned(x1)) {{\n");
    out_.line("multiply_tile(shared, share, batch, first_row, first_column, x);\n}} else {{\n");
    out_.line("wait_for_previous();\nlet_next_start();\n");
    out_.line("multiply_one_by_one((f32*)shared, share, batch, first_row, first_column, x);\n}}\n");
    out_.line("if (kSplits > 1) synchronize_cluster();\n");
    write_epilogue();
    out_.line("if (kSplits > 1) synchronize_cluster(); else __syncthreads();\n}}\n}}\n");
  }

  // A thread has kWide neighbours of a row at a time, twice: all are loaded and computed before the first is
  // stored, since what is stored could be what the next load reads. Beyond the edge the last number is
  // computed again.
  void write_epilogue() {
    const loops::Stage& stored = epilogue_.stages.back();
    invariant(stored.store.has_value(), "an epilogue stores what it computes last");
    const loops::Buffer& buffer = epilogue_.buffers[static_cast<size_t>(stored.store->buffer)];
    const std::string result = fmt::format("b{}", stored.store->buffer);
    out_.line("constexpr int kAcross = kColumns / kWide, kShare = kRows * kAcross / kSplits;\n");
    out_.line("constexpr int kAtOnce = kShare > kThreads ? 2 : 1;\nconst int end = (share + 1) * kShare;\n");
    out_.line("const auto place_of = [&](idx row, idx column) {{\n");
    const std::string place = place_text(buffer, stored);  // writes its variables
    out_.line("return {};\n}};\n", place);
    out_.line("const auto finish = [&](idx row, idx column, f32 sum) {{\n");
    write_value();
    out_.line("}};\nfor (int i = share * kShare + threadIdx.x; i < end; i += kAtOnce * kThreads) {{\n");
    out_.line("{} values[kAtOnce][kWide];\n", type_name(stored.value->dtype));
    out_.line("#pragma unroll\nfor (int n = 0; n < kAtOnce; ++n) {{\n");
    out_.line("const int at = least(i + n * kThreads, end - 1), across = at % kAcross * kWide;\n");
    out_.line(
        "f32 sums[kWide];\nadd_shares_of(sums, (const f32*)shared + at / kAcross * kSumStride + across);\n");
    out_.line("#pragma unroll\nfor (int k = 0; k < kWide; ++k)\n");
    out_.line("values[n][k] = finish(least<idx>(first_row + at / kAcross, x.rows - 1), ");
    out_.line("least<idx>(first_column + across + k, x.columns - 1), sums[k]);\n}}\n");
    out_.line("#pragma unroll\nfor (int n = 0; n < kAtOnce; ++n) {{\n");
    out_.line("const int at = i + n * kThreads;\nconst idx column = first_column + at % kAcross * kWide;\n");
    out_.line("const idx row = first_row + at / kAcross;\nif (at >= end || row >= x.rows) break;\n");
    if (!row_tile_ && stores_neighbours(buffer, stored)) {
      out_.line("{}* const to = {} + place_of(row, column);\n", storage_name(buffer.type.dtype), result);
      out_.line("if (kWide == 8 && column + 8 <= x.columns && is_aligned(to)) {{\n");
      out_.line("store_eight<{}>(to, values[n]);\ncontinue;\n}}\n", buffer.type.dtype == DType::kBF16);
    }
    out_.line("#pragma unroll\nfor (int k = 0; k < kWide; ++k) {{\nif (column + k < x.columns)\n");
    out_.text += store_text(buffer, result, "place_of(row, column + k)", "values[n][k]");
    out_.line("}}\n}}\n}}\n");
  }

  // Whether eight columns from a multiple of eight on are halves side by side in the result.
  bool stores_neighbours(const loops::Buffer& buffer, const loops::Stage& stored) const {
    constexpr int64_t kEight = 8;
    const Layout& layout = buffer.type.layout;
    const Dim last = Dim::symbol(epilogue_.parallel[roles_.column].variable);
    const size_t rank = buffer.type.rank();
    if (!is_half(buffer.type.dtype) || layout.is_row_major())
      return is_half(buffer.type.dtype) && stored.store->index[rank - 1] == last;
    const LayoutAxis& inner = layout.axes.back();
    return stored.store->index[static_cast<size_t>(inner.dim)] == last && inner.divisor == 1 &&
           inner.modulus % kEight == 0;
  }

  // Where the number at `row` and `column` of `batch` is stored, after the variables for it.
  std::string place_text(const loops::Buffer& buffer, const loops::Stage& stored) {
    IndexScope scope = out_.scope;
    bind_loops(scope);
    return scope.text(storage_offset(buffer.type.layout, buffer.type.shape, stored.store->index));
  }

  // The epilogue's parallel loops are the dims of the result, in order.
  void bind_loops(IndexScope& scope) {
    out_.decode(dims_of(roles_.batch), "batch", "n", scope);
    out_.decode(dims_of(roles_.rows), "row", "r", scope);
    for (size_t i = 0; i < roles_.batch.size(); ++i) bind_loop(roles_.batch[i], fmt::format("n{}", i), scope);
    for (size_t i = 0; i < roles_.rows.size(); ++i) bind_loop(roles_.rows[i], fmt::format("r{}", i), scope);
    bind_loop(roles_.column, "column", scope);
  }

  // The number at `row` and `column` of `batch`, whose products add up to `sum`.
  void write_value() {
    IndexScope scope = out_.scope;
    if (node_.op != &ops::matmul && node_.has_operand(2))
      out_.line("sum = add_(sum, {}(x2 + column));\n",
                node_.operand_type(2).dtype == DType::kBF16 ? "load_bf16" : "load_f16");
    bind_loops(scope);
    std::vector<LocalAccess> locals;
    ExpressionWriter writer(epilogue_, locals, out_.text);
    writer.replace_buffer(0, "sum");
    for (const loops::Stage& stage : epilogue_.stages) {
      invariant(!stage.store || &stage == &epilogue_.stages.back(), "an epilogue stores once");
      locals.push_back({writer.value(stage.value, scope, {}), {}});
    }
    out_.line("return {};\n", locals.back().name);
  }

  void bind_loop(size_t dim, const std::string& name, IndexScope& scope) const {
    scope.add(epilogue_.parallel[dim], name);
  }

  const Node& node_;
  const bool b_is_weight_;
  const loops::Kernel epilogue_;
  const Roles roles_;
  TemplateText out_;
  Dim batch_, rows_, columns_, depth_;
  Tile tile_{};  // if there is no row_tile_
  std::optional<RowTile> row_tile_;
};

}  // namespace

TemplateKernel write_contraction(const ContractionSite& site, const loops::Kernel& epilogue) {
  return ContractionWriter(site, loops::expand_math(epilogue)).write();
}

}  // namespace ingot::core::cuda
