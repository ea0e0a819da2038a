// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "backends/cuda/compile/attention_products_text.h"
#include "backends/cuda/compile/attention_rows.h"
#include "backends/cuda/compile/attention_text.h"
#include "backends/cuda/compile/attention_tile.h"
#include "backends/cuda/compile/float_products_text.h"
#include "backends/cuda/compile/gpu_limits.h"
#include "backends/cuda/compile/group_attention_text.h"
#include "backends/cuda/compile/half_functions.h"
#include "backends/cuda/compile/operand_text.h"
#include "backends/cuda/compile/product_shape.h"
#include "backends/cuda/compile/register_attention_text.h"
#include "backends/cuda/compile/template_text.h"
#include "backends/cuda/compile/tensor_core_text.h"
#include "backends/cuda/compile/tensor_core_types.h"
#include "backends/cuda/compile/type_text.h"
#include "backends/cuda/compile/warp_group_text.h"
#include "ops/attention.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

constexpr int kMostStages = 4;  // parts that are being copied
constexpr int64_t kComputedAlignment = 16;

class AttentionWriter {
 public:
  AttentionWriter(const AttentionSite& site, const AttentionTactic& tactic)
      : node_(site.node),
        attributes_(node_.attributes<ops::Attention>()),
        rounds_to_tf32_(site.rounds_to_tf32),
        keys_are_old_(site.keys_are_old),
        prologue_(expand_functions(site.prologue, site.exact_functions)),
        out_(node_, kernels(), site.symbols),
        next_start_(tactic.next_start) {
    const GpuLimits limits = limits_of(site.architecture);
    const AttentionShape shape = attention_shape(node_);
    batch_dims_ = shape.batch_dims;
    batch_ = shape.batch;
    rows_ = queries_ = shape.queries;
    keys_ = shape.keys;
    width_ = *node_.operand_type(0).shape.back().constant();
    value_width_ = *node_.operand_type(2).shape.back().constant();
    tile_.element = static_cast<int>(bit_width(dtype()) / 8);
    by_bulk_copies_ =
        limits.warp_groups && largest_rank() <= kMapRank && is_half(dtype()) && tactic.register_warps == 0;
    tile_.groups = tactic.groups;
    tile_.key_groups = tactic.key_groups;
    if (tactic.groups > 0) {
      tile_.keys = tactic.part_keys;
      tile_.row_tiles = tactic.row_tiles;
    }
    tile_.warp_rows = tactic.warp_rows;
    tile_.splits = tactic.splits;
    tactic.register_warps > 0 ? take_few_rows(tactic) : fit_tile(limits);
    computed_ = computed_rows(site.computed, tile_.few_rows, *new_rows().constant(), width_);
  }

  TemplateKernel write() {
    out_.line("typedef {} idx;\n", out_.wide ? "i64" : "i32");
    write_element_functions(dtype(), out_);
    write_constants();
    write_operands();
    write_place("q_place", "q", 0, queries_);
    write_place("k_place", "k", 1, keys_);
    write_place("v_place", "v", 2, keys_);
    if (has_new_rows(node_)) {
      write_place("new_k_place", "new_k", ops::kNewKeys, new_rows());
      write_place("new_v_place", "new_v", ops::kNewValues, new_rows());
    }
    write_result_place();
    write_mask();
    if (tile_.few_rows > 0) write_computed_rows();
    if (by_bulk_copies_) write_boxes();
    out_.text += body();
    write_kernel();
    return {
        .threads = tile_.threads(),
        .cluster = tile_.splits,
        .items = batch_ * ceil_divide(rows_, Dim(tile_.rows() * tile_.row_tiles)),
        .shared_bytes = computed_offset() + (computed_.empty() ? 0 : computed_.back().end() * tile_.element),
        .maps = std::move(maps_),
        .symbols = out_.symbols,
        .text = std::string(tensor_core_functions()) + functions() + out_.text};
  }

 private:
  Prologue prologue() const { return prologue_ ? &*prologue_ : nullptr; }
  std::vector<const loops::Kernel*> kernels() const {
    return prologue_ ? std::vector{prologue()} : std::vector<Prologue>{};
  }
  bool is_computed(size_t operand) const {
    return std::ranges::count(computed_, operand, &ComputedRows::operand) > 0;
  }

  std::string body() const {
    if (tile_.groups > 0) return group_attention_body(group_mask(node_));
    if (tile_.few_rows > 0) return register_attention_body(tile_.splits, has_new_rows(node_));
    return attention_body(
        {.products = is_half(dtype()) ? attention_products_of_halves() : attention_products_of_floats(),
         .by_bulk_copies = by_bulk_copies_,
         .has_new_rows = has_new_rows(node_),
         .splits = tile_.splits});
  }

  std::string functions() const {
    if (tile_.groups > 0)
      return group_attention_functions(tile_.keys, static_cast<int>(value_width_), dtype() == DType::kBF16);
    const std::string_view copies = by_bulk_copies_ || tile_.splits > 1 ? bulk_copy_functions() : "";
    return std::string(copies) + (is_half(dtype()) ? "" : float_fragment_functions(rounds_to_tf32_));
  }

  Dim new_rows() const { return has_new_rows(node_) ? node_.operand_type(ops::kPositions).shape[0] : Dim(0); }

  void write_operands() {
    out_.line("struct Operands {{ const Element *q, *k, *v; bool aligned; idx queries, keys{};",
              out_.symbol_fields());
    if (has_new_rows(node_))
      out_.line(" const {}* positions; const Element *new_k, *new_v;",
                storage_name(node_.operand_type(ops::kPositions).dtype));
    out_.line(" {}}};\n", prologue_fields(prologue()));
  }

  DType dtype() const { return node_.operand_type(0).dtype; }
  size_t largest_rank() const {
    return std::max(
        {node_.operand_type(0).rank(), node_.operand_type(1).rank(), node_.operand_type(2).rank()});
  }

  // Blocks take heads of keys, with the queries of all heads that read them.
  void take_few_rows(const AttentionTactic& tactic) {
    tile_.warps = tactic.register_warps;
    tile_.keys = tile_.warps * tactic.warp_keys;
    heads_ = heads_per_key_head(node_);
    rows_ = queries_ * heads_;
    tile_.few_rows = static_cast<int>(*rows_.constant());
    if (heads_ != Dim(1)) batch_dims_.back() = floor_divide(batch_dims_.back(), heads_);
    batch_ = 1;
    for (const Dim& dim : batch_dims_) batch_ = batch_ * dim;
  }

  int64_t barrier_offset() const {
    return std::max(tile_.tile_bytes(width_, value_width_), tile_.merged_bytes(width_, value_width_));
  }

  int64_t received_offset() const {
    return barrier_offset() + int64_t{tile_.stages} * 16 + (tile_.row_tiles > 1 ? 16 : 0);
  }

  // Rows that are computed are there, in the order of operands, after everything else.
  int64_t computed_offset() const {
    const int64_t end = received_offset() + tile_.received_bytes(value_width_);
    return computed_.empty() ? end : (end + kComputedAlignment - 1) / kComputedAlignment * kComputedAlignment;
  }

  // compute_rows(to, batch, x) and where the rows are: kComputed, and the constants of computed_rows.
  void write_computed_rows() {
    out_.line("constexpr int kComputed = {};\n{}", computed_offset(), computed_constants(computed_));
    out_.open_function("void compute_rows(Element* to, idx batch, const Operands& x)");
    out_.text += prologue_buffers(prologue());
    for (size_t i = 0; i < computed_.size(); ++i) {
      begin_computed_rows(computed_[i], computed_, tile_.threads(), out_);
      IndexScope scope = out_.scope;
      const size_t operand = computed_[i].operand;
      std::vector<Dim> index = row_index(operand, new_rows(), scope);
      index.push_back(TemplateText::named(scope, "column", node_.operand_type(operand).shape.back()));
      end_computed_rows(computed_[i], *prologue_, prologue_->stages[i], index, scope, out_);
    }
    out_.line("}}\n");
  }

  void fit_tile(const GpuLimits& limits) {
    constexpr int64_t kMostTile = 96 << 10;  // so that two blocks share a multiprocessor of most GPUs
    const int64_t keys = out_.typical(keys_);
    const int64_t most = std::min(limits.shared_bytes - 1024, kMostTile) - tile_.received_bytes(value_width_);
    if (tile_.groups == 0 && tile_.warp_rows == 1 && keys > tile_.keys) tile_.keys *= 2;
    if (tile_.groups == 0 && tile_.tile_bytes(width_, value_width_) > most) tile_.keys = 64;
    const int64_t parts = (keys + tile_.keys - 1) / tile_.keys;
    if (tile_.key_groups > 1) {  // each group copies a part while it has another, unless one is all
      tile_.stages = has_part_per_key_group() ? tile_.key_groups : 2 * tile_.key_groups;
      return;
    }
    // A part is copied while the one before it is used, unless one is all.
    const auto all_keys = keys_.constant();
    const bool is_all = all_keys && *all_keys <= tile_.keys;
    const int64_t least = tile_.groups > 0 && !is_all ? 2 : 1;
    const int64_t wanted = std::min<int64_t>((parts + tile_.splits - 1) / tile_.splits, kMostStages);
    const int64_t room = tile_.groups > 0 ? tile_.room(limits.shared_bytes, value_width_) : most;
    tile_.stages = static_cast<int>(std::max(wanted, least));
    while (tile_.stages > least && tile_.tile_bytes(width_, value_width_) > room) --tile_.stages;
  }

  bool has_part_per_key_group() const {
    const auto keys = keys_.constant();
    return keys && *keys <= int64_t{tile_.key_groups} * tile_.keys;
  }

  // copy_q_box(to, barrier, map, x, batch, first, depth) and so on: a part's rows from `first` on, 64
  // columns.
  void write_boxes() {
    constexpr std::array kNames = {"q", "k", "v"};
    for (size_t i = 0; i < kNames.size(); ++i) {
      const TensorType& type = node_.operand_type(i);
      maps_.push_back(map_of_stored(i, type));
      maps_.back().box[storage_position(type.rank() - 2, type)] = i == 0 ? tile_.rows() : tile_.keys;
      IndexScope scope = out_.scope;
      out_.open_function(box_copy_signature(kNames[i]));
      std::vector<Dim> index = batch_index(type, attributes_.grouped && i > 0, scope);
      index.push_back(TemplateText::named(scope, "first", i == 0 ? queries_ : keys_));
      index.push_back(TemplateText::named(scope, "depth", type.shape.back()));
      out_.line("copy_box(to, barrier, map{});\n}}\n", box_coordinates(type, index, scope));
    }
  }

  void write_constants() {
    out_.text += next_start_constants(next_start_);
    const double scale =
        attributes_.scale != 0 ? attributes_.scale : 1 / std::sqrt(static_cast<double>(width_));
    out_.line("constexpr int kSplits = {}, kStages = {}, kBarriers = {}, kReceived = {};\n", tile_.splits,
              tile_.stages, barrier_offset(), received_offset());
    out_.line("constexpr int kWidth = {}, kValueWidth = {}, kWarpRows = {}, kWarpKeys = {}, kKeys = {};\n",
              width_, value_width_, tile_.warp_rows, tile_.warp_keys(), tile_.keys);
    out_.line("constexpr int kNewRows = {}, kFewRows = {};\n", *new_rows().constant(), tile_.few_rows);
    out_.line("constexpr int kGroups = {}, kKeyGroups = {}, kRowTiles = {};\nconstexpr bool kHasMask = {};\n",
              tile_.groups, tile_.key_groups, tile_.row_tiles, node_.has_operand(3));
    out_.line("constexpr bool kKeysAreOld = {};\n", has_new_rows(node_) && keys_are_old_);
    out_.line("constexpr bool kNeighbours = {};\n", is_last_innermost(node_.results[0]->type));
    out_.line("constexpr bool kCausal = {}, kEmptyIsNan = {};\nconstexpr f32 kScale = {:a}f;\n",
              attributes_.causal, attributes_.empty_is_nan, static_cast<float>(scale));
  }

  // The batch part of an index into keys or values, and into operands that are not grouped.
  std::vector<Dim> batch_index(const TensorType& type, bool is_grouped, IndexScope& scope) {
    const std::vector<Dim> batch = out_.decode(batch_dims_, "batch", "n", scope);
    std::vector<Dim> index = broadcast_batch(type, batch);
    const bool is_of_query = is_grouped && !index.empty() && heads_ == Dim(1);
    if (is_of_query) index.back() = floor_divide(batch.back(), heads_per_key_head(node_));
    return index;
  }

  // The index of a row among all queries. Rows of several heads are numbered one head after the other.
  std::vector<Dim> query_index(IndexScope& scope) {
    std::vector<Dim> index = out_.decode(batch_dims_, "batch", "n", scope);
    const Dim row = TemplateText::named(scope, "row", rows_);
    if (heads_ == Dim(1)) {
      index.push_back(row);
      return index;
    }
    const Dim head = floor_divide(row, queries_);
    index.back() = index.back() * heads_ + head;
    index.push_back(row - head * queries_);
    return index;
  }

  // The index of a row of queries, keys or values, of which a head has `rows`.
  std::vector<Dim> row_index(size_t operand, const Dim& rows, IndexScope& scope) {
    const TensorType& type = node_.operand_type(operand);
    if (operand == ops::kQuery)
      return broadcast_index(std::span(type.shape).first(type.rank() - 1), query_index(scope));
    std::vector<Dim> index = batch_index(type, attributes_.grouped, scope);
    index.push_back(TemplateText::named(scope, "row", rows));
    return index;
  }

  void write_place(std::string_view name, std::string_view field, size_t operand, const Dim& rows) {
    const TensorType& type = node_.operand_type(operand);
    IndexScope scope = out_.scope;
    out_.open_function(fmt::format("const Element* {}(const Operands& x, idx batch, idx row)", name));
    std::vector<Dim> index = row_index(operand, rows, scope);
    index.push_back(0);
    out_.line("return x.{} + {};\n}}\n", field, scope.text(storage_offset(type.layout, type.shape, index)));
  }

  void write_result_place() {
    const TensorType& type = node_.results[0]->type;
    IndexScope scope = out_.scope;
    out_.open_function("idx result_place(const Operands& x, idx batch, idx row, idx column)");
    std::vector<Dim> index = query_index(scope);
    index.push_back(TemplateText::named(scope, "column", type.shape.back()));
    out_.line("return {};\n}}\n", scope.text(storage_offset(type.layout, type.shape, index)));
  }

  // The mask's addend to a score; -infinity for keys that are hidden.
  void write_mask() {
    const bool has_mask = node_.has_operand(3);
    const std::string_view storage = has_mask ? storage_name(node_.operand_type(3).dtype) : "u8";
    out_.line("typedef {} Mask;\n", storage);
    if (has_mask) write_mask_place();
    out_.open_function("f32 bias_of(const Operands& x, const Mask* mask, idx batch, idx row, idx key)");
    if (attributes_.causal)
      out_.line("if (key > row{}) return -__int_as_float(0x7f800000);\n",
                heads_ != Dim(1) ? fmt::format(" % {}", *queries_.constant()) : "");
    if (has_mask) out_.line("const Mask* const at = mask + mask_place(x, batch, row, key);\n");
    out_.line("return {};\n}}\n", has_mask ? mask_load(node_.operand_type(3).dtype) : "0");
  }

  void write_mask_place() {
    const TensorType& type = node_.operand_type(3);
    IndexScope scope = out_.scope;
    out_.open_function("idx mask_place(const Operands& x, idx batch, idx row, idx key)");
    std::vector<Dim> all = query_index(scope);
    all.push_back(TemplateText::named(scope, "key", keys_));
    const std::vector<Dim> index = broadcast_index(type.shape, all);
    out_.line("return {};\n}}\n", scope.text(storage_offset(type.layout, type.shape, index)));
  }

  void write_signature() {
    out_.line("extern \"C\" __global__ void __launch_bounds__({}{}) {} ingot_kernel(", tile_.threads(),
              tile_.groups > 0 ? fmt::format(", {}", tile_.resident_blocks(value_width_)) : "",
              tile_.splits > 1 ? fmt::format("__cluster_dims__({})", tile_.splits) : "");
    const auto write_rows = [&](size_t operand) {
      if (!is_computed(operand)) out_.line("const Element* {}, ", name_of(operand));
    };
    write_rows(ops::kQuery);
    out_.line("const Element* k, const Element* v, ");
    if (node_.has_operand(3)) out_.line("const Mask* mask, ");
    if (has_new_rows(node_)) {
      out_.line("const {}* positions, ", storage_name(node_.operand_type(ops::kPositions).dtype));
      write_rows(ops::kNewKeys);
      write_rows(ops::kNewValues);
    }
    out_.line("Element* result, {}", prologue_arguments(prologue()));
    for (size_t i = 0; i < out_.symbols.size(); ++i) out_.line("i64 a{}, ", i);
    out_.line("char* scratch, i32* status");
    if (by_bulk_copies_) {
      for (const char* name : {"q", "k", "v"}) out_.line(", const __grid_constant__ TensorMap {}_map", name);
    }
    out_.line(") {{\nextern __shared__ __align__(1024) char shared[];\n");
    for (const ComputedRows& rows : computed_)
      out_.line("const Element* const {} = nullptr;\n", name_of(rows.operand));
  }
  static std::string_view name_of(size_t operand) {
    return operand == ops::kQuery ? "q" : operand == ops::kNewKeys ? "new_k" : "new_v";
  }

  void write_kernel() {
    write_signature();
    if (!node_.has_operand(3)) out_.line("const Mask* const mask = nullptr;\n");
    out_.declare_symbols();
    const bool cached = has_new_rows(node_);
    const bool reads_bits = tile_.groups > 0 && group_mask(node_) == GroupMask::kBits;
    out_.line(
        "const Operands x = {{q, k, v, is_aligned(q) && is_aligned(k) && is_aligned(v){}{} && {} <= "
        "kMostRows && {} <= kMostRows, {}, {}{}{}{}}};\n",
        cached ? " && is_aligned(new_k) && is_aligned(new_v)" : "", reads_bits ? " && is_aligned(mask)" : "",
        out_.scope.text(queries_), out_.scope.text(keys_), out_.scope.text(rows_), out_.scope.text(keys_),
        out_.symbol_fields(), cached ? ", positions, new_k, new_v" : "", prologue_values(prologue()));
    out_.line("const Maps maps{};\n", by_bulk_copies_ ? " = {&q_map, &k_map, &v_map}" : " = {}");
    out_.line("Cluster cluster;\ncluster.begin(shared);\n");
    out_.line("Arrivals arrivals;\narrivals.begin(shared + kBarriers, maps, x.aligned);\n");
    out_.line("if (kNextAtOnce) let_next_start();\nif (!kKeysAreOld) wait_for_previous();\n");
    out_.line("constexpr int kBlockRows = kRows * kRowTiles;\n");
    out_.line("const idx down = (x.queries + kBlockRows - 1) / kBlockRows;\n");
    out_.line("for (idx tile = blockIdx.x / kSplits; tile < down * {}; tile += gridDim.x / kSplits) {{\n",
              out_.scope.text(batch_));
    out_.line("const bool last = tile + gridDim.x / kSplits >= down * {};\n", out_.scope.text(batch_));
    out_.line(
        "attend(shared, blockIdx.x % kSplits, cluster, last, arrivals, maps, mask, result, tile / down, tile "
        "% down * kBlockRows, x);\n");
    if (by_bulk_copies_) out_.line("if (!last) order_shared_memory(), __syncthreads();\n");
    out_.line("}}\n}}\n");
  }

  const Node& node_;
  const ops::Attention attributes_;
  const bool rounds_to_tf32_, keys_are_old_;
  const std::optional<loops::Kernel> prologue_;
  TemplateText out_;
  const NextStart next_start_;
  std::vector<Dim> batch_dims_;
  Dim batch_ = 1, queries_, keys_;
  Dim rows_, heads_ = 1;  // queries of all heads that a block takes together; so many heads
  int64_t width_ = 0, value_width_ = 0;
  AttentionTile tile_;
  bool by_bulk_copies_ = false;
  std::vector<TensorMap> maps_;
  std::vector<ComputedRows> computed_;
};

}  // namespace

TemplateKernel write_attention(const AttentionSite& site, const AttentionTactic& tactic) {
  TemplateKernel kernel = AttentionWriter(site, tactic).write();
  kernel.tactic = name(tactic);
  return kernel;
}

}  // namespace ingot::core::cuda
