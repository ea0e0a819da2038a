// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "backends/cuda/compile/attention_products_text.h"
#include "backends/cuda/compile/attention_text.h"
#include "backends/cuda/compile/float_products_text.h"
#include "backends/cuda/compile/gpu_limits.h"
#include "backends/cuda/compile/group_attention_text.h"
#include "backends/cuda/compile/operand_text.h"
#include "backends/cuda/compile/product_shape.h"
#include "backends/cuda/compile/template_text.h"
#include "backends/cuda/compile/tensor_core_text.h"
#include "backends/cuda/compile/tensor_core_types.h"
#include "backends/cuda/compile/type_text.h"
#include "backends/cuda/compile/warp_group_text.h"
#include "ops/attention.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

constexpr int64_t kFragment = 16;                           // rows
constexpr int64_t kFragmentBytes = 32, kWidestBytes = 512;  // of a row
constexpr int kWarps = 4;                                   // of a block
constexpr int kKeys = 64;                                   // of a part, at least
constexpr int kMostSplits = 8;                              // blocks of a cluster
constexpr int kMostStages = 4;                              // parts that are being copied
constexpr int64_t kManyBlocks = 110;                        // enough to fill most of a GPU
constexpr int kGroupRows = 64;                              // queries of a group of warps
constexpr int64_t kWidestOfGroups = 128;                    // of keys and values, in registers

bool is_last_innermost(const TensorType& type) { return innermost(type) == type.rank() - 1; }

bool has_fragments(const TensorType& type) {
  const auto width = type.shape.back().constant();
  const int64_t bytes = width.value_or(0) * bit_width(type.dtype) / 8;
  return bytes > 0 && bytes % kFragmentBytes == 0 && bytes <= kWidestBytes;
}

bool is_mask(const TensorType& type) {
  return type.layout.is_permutation() && (type.dtype == DType::kBool || is_floating(type.dtype)) &&
         bit_width(type.dtype) >= 8;
}

// How the work is cut into blocks, of four warps or of groups of four warps.
struct AttentionTile {
  int groups = 0;     // of warps, with 64 queries each; if none:
  int warp_rows = 1;  // warps with 16 queries each; the others share the keys
  int keys = 64;      // of a part
  int stages = 1;     // parts in shared memory
  int splits = 1;     // blocks of a cluster, which share the keys
  int element = 2;    // bytes of an operand's element
  int warp_keys() const { return kWarps / warp_rows; }
  int64_t rows() const { return groups > 0 ? int64_t{groups} * kGroupRows : warp_rows * kFragment; }
  int threads() const { return std::max(groups, 1) * kWarps * 32; }

  // Tiles of 128 bytes per row, and the partial results that warps and blocks exchange at the end.
  int64_t tile_bytes(int64_t width, int64_t value_width) const {
    constexpr int64_t kPanel = 128;
    const auto panels = [&](int64_t columns) { return (columns * element + kPanel - 1) / kPanel * kPanel; };
    const int64_t row_panels = panels(groups > 0 ? std::max(width, value_width) : width);
    return rows() * row_panels + int64_t{stages} * keys * (panels(width) + panels(value_width));
  }
  int64_t merged_bytes(int64_t value_width) const {
    if (groups > 0) return 0;
    return 4 * rows() * (warp_keys() * (value_width + 4) + 2 * (warp_keys() + 1));
  }
};

// The sizes of an attention: one product of queries and keys for each of the batch.
struct AttentionShape {
  std::vector<Dim> batch_dims;
  Dim batch = 1, queries, keys;
};

AttentionShape attention_shape(const Node& node) {
  const Shape &result = node.results[0]->type.shape, &k = node.operand_type(1).shape;
  AttentionShape shape{.batch_dims = {result.begin(), result.end() - 2},
                       .queries = result[result.size() - 2],
                       .keys = k[k.size() - 2]};
  for (const Dim& dim : shape.batch_dims) shape.batch = shape.batch * dim;
  return shape;
}

class AttentionWriter {
 public:
  AttentionWriter(const AttentionSite& site, const AttentionTactic& tactic)
      : node_(site.node),
        attributes_(node_.attributes<ops::Attention>()),
        rounds_to_tf32_(site.rounds_to_tf32),
        out_(node_, {}, site.symbols),
        next_start_(tactic.next_start) {
    const GpuLimits limits = limits_of(site.architecture);
    const AttentionShape shape = attention_shape(node_);
    batch_dims_ = shape.batch_dims;
    batch_ = shape.batch;
    queries_ = shape.queries;
    keys_ = shape.keys;
    width_ = *node_.operand_type(0).shape.back().constant();
    value_width_ = *node_.operand_type(2).shape.back().constant();
    tile_.element = static_cast<int>(bit_width(dtype()) / 8);
    by_bulk_copies_ = limits.warp_groups && largest_rank() <= kMapRank && is_half(dtype());
    tile_.groups = tactic.groups;
    tile_.warp_rows = tactic.warp_rows;
    tile_.splits = tactic.splits;
    fit_tile(limits);
  }

  TemplateKernel write() {
    out_.line("typedef {} idx;\n", out_.wide ? "i64" : "i32");
    write_element_functions(dtype(), out_);
    write_constants();
    out_.line("struct Operands {{ const Element *q, *k, *v; bool aligned; idx queries, keys{}; }};\n",
              out_.symbol_fields());
    write_place("q_place", "q", 0, queries_);
    write_place("k_place", "k", 1, keys_);
    write_place("v_place", "v", 2, keys_);
    write_result_place();
    write_mask();
    if (by_bulk_copies_) write_boxes();
    out_.text += body();
    write_kernel();
    return {.threads = tile_.threads(),
            .cluster = tile_.splits,
            .items = batch_ * ceil_divide(queries_, Dim(tile_.rows())),
            .shared_bytes = barrier_offset() + tile_.stages * (tile_.groups > 0 ? 16 : 8),
            .maps = std::move(maps_),
            .symbols = out_.symbols,
            .text = std::string(tensor_core_functions()) + functions() + out_.text};
  }

 private:
  std::string body() const {
    if (tile_.groups > 0) return group_attention_body();
    return attention_body(is_half(dtype()) ? attention_products_of_halves() : attention_products_of_floats(),
                          by_bulk_copies_);
  }

  std::string functions() const {
    if (tile_.groups > 0)
      return group_attention_functions(tile_.keys, static_cast<int>(value_width_), dtype() == DType::kBF16);
    if (!is_half(dtype())) return float_fragment_functions(rounds_to_tf32_);
    return by_bulk_copies_ ? std::string(bulk_copy_functions()) : "";
  }

  DType dtype() const { return node_.operand_type(0).dtype; }
  size_t largest_rank() const {
    return std::max(
        {node_.operand_type(0).rank(), node_.operand_type(1).rank(), node_.operand_type(2).rank()});
  }

  // Groups hide each other's exponentials if there are four of them on a multiprocessor.
  int resident_blocks() const { return value_width_ <= kGroupRows ? 4 / tile_.groups : 1; }

  int64_t barrier_offset() const {
    return std::max(tile_.tile_bytes(width_, value_width_), tile_.merged_bytes(value_width_));
  }

  void fit_tile(const GpuLimits& limits) {
    constexpr int64_t kMostTile = 96 << 10;  // so that two blocks share a multiprocessor of most GPUs
    const int64_t keys = out_.typical(keys_), most = std::min(limits.shared_bytes - 1024, kMostTile);
    if (tile_.groups == 0 && tile_.warp_rows == 1 && keys > tile_.keys) tile_.keys *= 2;
    if (tile_.tile_bytes(width_, value_width_) > most) tile_.keys = 64;
    const int64_t parts = (keys + tile_.keys - 1) / tile_.keys;
    const int64_t wanted = std::min<int64_t>((parts + tile_.splits - 1) / tile_.splits, kMostStages);
    for (tile_.stages = static_cast<int>(wanted); tile_.stages > 1; --tile_.stages) {
      if (tile_.tile_bytes(width_, value_width_) <= most) break;
    }
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
    out_.line("constexpr int kSplits = {}, kStages = {}, kBarriers = {};\n", tile_.splits, tile_.stages,
              barrier_offset());
    out_.line("constexpr int kWidth = {}, kValueWidth = {}, kWarpRows = {}, kWarpKeys = {}, kKeys = {};\n",
              width_, value_width_, tile_.warp_rows, tile_.warp_keys(), tile_.keys);
    out_.line("constexpr int kGroups = {};\nconstexpr bool kHasMask = {};\n", tile_.groups,
              node_.has_operand(3));
    out_.line("constexpr bool kNeighbours = {};\n", is_last_innermost(node_.results[0]->type));
    out_.line("constexpr bool kCausal = {}, kEmptyIsNan = {};\nconstexpr f32 kScale = {:a}f;\n",
              attributes_.causal, attributes_.empty_is_nan, static_cast<float>(scale));
  }

  // The batch part of an index into an operand.
  std::vector<Dim> batch_index(const TensorType& type, bool is_grouped, IndexScope& scope) {
    const std::vector<Dim> batch = out_.decode(batch_dims_, "batch", "n", scope);
    std::vector<Dim> index = broadcast_batch(type, batch);
    if (is_grouped && !index.empty()) {
      const Dim group =
          floor_divide(node_.operand_type(0).shape[index.size() - 1], type.shape[index.size() - 1]);
      index.back() = floor_divide(batch.back(), group);
    }
    return index;
  }

  void write_place(std::string_view name, std::string_view field, size_t operand, const Dim& rows) {
    const TensorType& type = node_.operand_type(operand);
    IndexScope scope = out_.scope;
    out_.open_function(fmt::format("const Element* {}(const Operands& x, idx batch, idx row)", name));
    std::vector<Dim> index = batch_index(type, attributes_.grouped && operand > 0, scope);
    index.push_back(TemplateText::named(scope, "row", rows));
    index.push_back(0);
    out_.line("return x.{} + {};\n}}\n", field, scope.text(storage_offset(type.layout, type.shape, index)));
  }

  void write_result_place() {
    const TensorType& type = node_.results[0]->type;
    IndexScope scope = out_.scope;
    out_.open_function("idx result_place(const Operands& x, idx batch, idx row, idx column)");
    std::vector<Dim> index = out_.decode(batch_dims_, "batch", "n", scope);
    index.push_back(TemplateText::named(scope, "row", queries_));
    index.push_back(TemplateText::named(scope, "column", type.shape.back()));
    out_.line("return {};\n}}\n", scope.text(storage_offset(type.layout, type.shape, index)));
  }

  // The mask's addend to a score; -infinity for keys that are hidden.
  void write_mask() {
    const bool has_mask = node_.has_operand(3);
    const std::string_view storage = has_mask ? storage_name(node_.operand_type(3).dtype) : "u8";
    out_.line("typedef {} Mask;\n", storage);
    out_.open_function("f32 bias_of(const Operands& x, const Mask* mask, idx batch, idx row, idx key)");
    if (attributes_.causal) out_.line("if (key > row) return -__int_as_float(0x7f800000);\n");
    if (has_mask) return write_mask_load();
    out_.line("return 0;\n}}\n");
  }

  void write_mask_load() {
    const TensorType& type = node_.operand_type(3);
    IndexScope scope = out_.scope;
    std::vector<Dim> all = out_.decode(batch_dims_, "batch", "n", scope);
    all.push_back(TemplateText::named(scope, "row", queries_));
    all.push_back(TemplateText::named(scope, "key", keys_));
    const std::vector<Dim> index = broadcast_index(type.shape, all);
    const std::string place = scope.text(storage_offset(type.layout, type.shape, index));
    if (type.dtype == DType::kBool) {
      out_.line("return mask[{}] == 0 ? -__int_as_float(0x7f800000) : 0;\n}}\n", place);
      return;
    }
    const std::string load = type.dtype == DType::kF16    ? fmt::format("load_f16(mask + {})", place)
                             : type.dtype == DType::kBF16 ? fmt::format("load_bf16(mask + {})", place)
                                                          : fmt::format("(f32)mask[{}]", place);
    out_.line("return {};\n}}\n", load);
  }

  void write_kernel() {
    out_.line(
        "extern \"C\" __global__ void __launch_bounds__({}{}) {} ingot_kernel(const Element* q, const "
        "Element* "
        "k, const Element* v, ",
        tile_.threads(), tile_.groups > 0 ? fmt::format(", {}", resident_blocks()) : "",
        tile_.splits > 1 ? fmt::format("__cluster_dims__({})", tile_.splits) : "");
    if (node_.has_operand(3)) out_.line("const Mask* mask, ");
    out_.line("Element* result, ");
    for (size_t i = 0; i < out_.symbols.size(); ++i) out_.line("i64 a{}, ", i);
    out_.line("char* scratch, i32* status");
    if (by_bulk_copies_) {
      for (const char* name : {"q", "k", "v"}) out_.line(", const __grid_constant__ TensorMap {}_map", name);
    }
    out_.line(") {{\nextern __shared__ __align__(1024) char shared[];\n");
    if (!node_.has_operand(3)) out_.line("const Mask* const mask = nullptr;\n");
    out_.declare_symbols();
    out_.line(
        "const Operands x = {{q, k, v, is_aligned(q) && is_aligned(k) && is_aligned(v) && {} <= kMostRows && "
        "{} <= kMostRows, {}, {}{}}};\n",
        out_.scope.text(queries_), out_.scope.text(keys_), out_.scope.text(queries_), out_.scope.text(keys_),
        out_.symbol_fields());
    out_.line("const Maps maps{};\n", by_bulk_copies_ ? " = {&q_map, &k_map, &v_map}" : " = {}");
    out_.line("Arrivals arrivals;\narrivals.begin(shared + kBarriers, maps, x.aligned);\n");
    out_.line("if (kNextAtOnce) let_next_start();\nwait_for_previous();\n");
    out_.line("const idx down = (x.queries + kRows - 1) / kRows;\n");
    out_.line("for (idx tile = blockIdx.x / kSplits; tile < down * {}; tile += gridDim.x / kSplits) {{\n",
              out_.scope.text(batch_));
    out_.line(
        "attend(shared, blockIdx.x % kSplits, arrivals, maps, mask, result, tile / down, tile % down * "
        "kRows, ");
    out_.line("x);\n");
    if (by_bulk_copies_) out_.line("order_shared_memory();\n__syncthreads();\n");
    out_.line("}}\n}}\n");
  }

  const Node& node_;
  const ops::Attention attributes_;
  const bool rounds_to_tf32_;
  TemplateText out_;
  const NextStart next_start_;
  std::vector<Dim> batch_dims_;
  Dim batch_ = 1, queries_, keys_;
  int64_t width_ = 0, value_width_ = 0;
  AttentionTile tile_;
  bool by_bulk_copies_ = false;
  std::vector<TensorMap> maps_;
};

}  // namespace

bool is_tensor_core_attention(const Node& node) {
  if (node.op != &ops::attention) return false;
  for (size_t i = 0; i < 3; ++i) {
    const TensorType& type = node.operand_type(i);
    if (!has_tensor_cores(type.dtype) || !is_last_innermost(type) || !has_fragments(type)) return false;
  }
  return node.results[0]->type.layout.is_permutation() &&
         (!node.has_operand(3) || is_mask(node.operand_type(3)));
}

LayoutRequest attention_layouts(const Node& node) {
  LayoutRequest request;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const bool stays = i < 3 && is_last_innermost(node.operand_type(i));
    request.operands.push_back(stays ? std::nullopt : std::optional(Layout{}));
  }
  request.results = {std::nullopt};
  return request;
}

TemplateKernel write_attention(const AttentionSite& site, const AttentionTactic& tactic) {
  TemplateKernel kernel = AttentionWriter(site, tactic).write();
  const std::string tile =
      tactic.groups > 0 ? fmt::format("{} groups of queries", tactic.groups)
                        : fmt::format("{} warps of queries, {} splits", tactic.warp_rows, tactic.splits);
  kernel.tactic = fmt::format("{}, next {}", tile, name(tactic.next_start));
  return kernel;
}

// Groups of warps, or 64 queries per block, if that fills the GPU; otherwise warps, and blocks if there are
// few of them, share the keys.
std::vector<AttentionTactic> rank_tactics(const AttentionSite& site) {
  const TemplateText text(site.node, {}, site.symbols);
  const AttentionShape shape = attention_shape(site.node);
  const bool has_clusters = limits_of(site.architecture).clusters;
  const int64_t keys = text.typical(shape.keys), queries = text.typical(shape.queries),
                batch = text.typical(shape.batch);
  const auto blocks = [&](int warp_rows) {
    return batch * ((queries + warp_rows * kFragment - 1) / (warp_rows * kFragment));
  };
  const auto takes_groups = [&] {
    const TensorType &q = site.node.operand_type(0), &v = site.node.operand_type(2);
    const size_t rank = std::max({q.rank(), site.node.operand_type(1).rank(), v.rank()});
    return limits_of(site.architecture).warp_groups && is_half(q.dtype) && rank <= kMapRank &&
           *q.shape.back().constant() <= kWidestOfGroups && *v.shape.back().constant() <= kWidestOfGroups;
  };
  const auto may_split = [&](int splits) { return has_clusters && keys >= 2 * int64_t{splits} * kKeys; };
  AttentionTactic best{.warp_rows = blocks(kWarps) >= kManyBlocks ? kWarps : 1};
  const auto fills = [&](int splits) { return blocks(best.warp_rows) * splits > kManyBlocks; };
  while (best.splits < kMostSplits && may_split(2 * best.splits) && !fills(2 * best.splits)) best.splits *= 2;
  std::vector<AttentionTactic> tactics = {best};
  for (const int groups : {1, 2}) {
    if (!takes_groups()) break;
    const int64_t rows = int64_t{groups} * kGroupRows;
    const bool fills = queries > kFragment && batch * ((queries + rows - 1) / rows) >= kManyBlocks;
    tactics.insert(fills ? tactics.begin() : tactics.end(), {.groups = groups});
  }
  for (const int warp_rows : {1, kWarps}) {
    for (int splits = 1; splits <= kMostSplits && (splits == 1 || may_split(splits)); splits *= 2) {
      const bool is_best = warp_rows == best.warp_rows && splits == best.splits;
      if (!is_best) tactics.push_back({.warp_rows = warp_rows, .splits = splits});
    }
  }
  return tactics;
}

}  // namespace ingot::core::cuda
