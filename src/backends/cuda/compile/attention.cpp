// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/attention.h"

#include <algorithm>
#include <cmath>

#include "backends/cuda/compile/attention_text.h"
#include "backends/cuda/compile/template_text.h"
#include "backends/cuda/compile/tensor_core_text.h"
#include "backends/cuda/compile/tile.h"
#include "backends/cuda/compile/type_text.h"
#include "ops/attention.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

constexpr int64_t kFragment = 16, kWidest = 256;
constexpr int kKeys = 64;             // of a part
constexpr int kMostSplits = 8;        // blocks of a cluster
constexpr int64_t kManyBlocks = 110;  // that fill most of a GPU

bool is_last_innermost(const TensorType& type) { return innermost(type) == type.rank() - 1; }

bool has_fragments(const TensorType& type) {
  const auto width = type.shape.back().constant();
  return width && *width > 0 && *width % kFragment == 0 && *width <= kWidest;
}

bool is_mask(const TensorType& type) {
  return type.layout.is_permutation() && (type.dtype == DType::kBool || is_floating(type.dtype)) &&
         bit_width(type.dtype) >= 8;
}

class AttentionWriter {
 public:
  AttentionWriter(const Node& node, const SymbolTable& symbols, bool clusters)
      : node_(node), attributes_(node.attributes<ops::Attention>()), out_(node, {}, symbols) {
    const Shape& result = node.results[0]->type.shape;
    batch_dims_.assign(result.begin(), result.end() - 2);
    for (const Dim& dim : batch_dims_) batch_ = batch_ * dim;
    queries_ = result[result.size() - 2];
    keys_ = node.operand_type(1).shape[node.operand_type(1).rank() - 2];
    width_ = *node.operand_type(0).shape.back().constant();
    value_width_ = *node.operand_type(2).shape.back().constant();
    const int64_t large = out_.typical(batch_) * ((out_.typical(queries_) + 63) / 64);
    warp_rows_ = large >= kManyBlocks ? 4 : 1;
    const int64_t blocks = out_.typical(batch_) * ((out_.typical(queries_) + 15) / 16);
    const auto suits = [&](int splits) {
      return blocks * splits <= kManyBlocks && out_.typical(keys_) >= 2 * int64_t{splits} * kKeys;
    };
    while (clusters && splits_ < kMostSplits && suits(2 * splits_)) splits_ *= 2;
  }

  TemplateKernel write() {
    out_.line("typedef {} idx;\n", out_.wide ? "i64" : "i32");
    write_constants();
    out_.line("struct Operands {{ const u16 *q, *k, *v; bool aligned; idx queries, keys{}; }};\n",
              out_.symbol_fields());
    write_place("q_place", "q", 0, queries_);
    write_place("k_place", "k", 1, keys_);
    write_place("v_place", "v", 2, keys_);
    write_result_place();
    write_mask();
    out_.text += attention_body();
    write_kernel();
    const int64_t rows = int64_t{warp_rows_} * kFragment;
    const int64_t parts = 2 * (rows * (width_ + 8) + 2 * kKeys * (width_ + 8 + value_width_ + 8));
    const int64_t shares = 4 / warp_rows_;
    const int64_t merged = 4 * rows * ((shares + 1) * (value_width_ + 4) + 3 * shares + splits_ + 4);
    return {.threads = 128,
            .cluster = splits_,
            .items = batch_ * ceil_divide(queries_, Dim(rows)),
            .shared_bytes = std::max(parts, merged),
            .symbols = out_.symbols,
            .text = std::string(tensor_core_functions()) + out_.text};
  }

 private:
  void write_constants() {
    const double scale =
        attributes_.scale != 0 ? attributes_.scale : 1 / std::sqrt(static_cast<double>(width_));
    out_.line("constexpr int kSplits = {};\n", splits_);
    out_.line("constexpr int kWidth = {}, kValueWidth = {}, kWarpRows = {}, kWarpKeys = {}, kKeys = {};\n",
              width_, value_width_, warp_rows_, 4 / warp_rows_, kKeys);
    out_.line("constexpr bool kBf16 = {}, kCausal = {}, kEmptyIsNan = {};\nconstexpr f32 kScale = {:a}f;\n",
              node_.operand_type(0).dtype == DType::kBF16, attributes_.causal, attributes_.empty_is_nan,
              static_cast<float>(scale));
  }

  // The batch part of an index into an operand.
  std::vector<Dim> batch_index(const TensorType& type, bool is_grouped, IndexScope& scope) {
    const std::vector<Dim> batch = out_.decode(batch_dims_, "batch", "n", scope);
    std::vector<Dim> index;
    for (size_t i = 0; i + 2 < type.rank(); ++i)
      index.push_back(type.shape[i] == Dim(1) ? Dim(0) : batch[batch.size() + 2 - type.rank() + i]);
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
    out_.open_function(fmt::format("const u16* {}(const Operands& x, idx batch, idx row)", name));
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

  // The score after its mask; -infinity for what may not be seen.
  void write_mask() {
    const bool has_mask = node_.has_operand(3);
    const std::string_view storage = has_mask ? storage_name(node_.operand_type(3).dtype) : "u8";
    out_.line("typedef {} Mask;\n", storage);
    out_.open_function(
        "f32 masked(const Operands& x, const Mask* mask, idx batch, idx row, idx key, f32 score)");
    if (attributes_.causal) out_.line("if (key > row) return -__int_as_float(0x7f800000);\n");
    if (has_mask) write_mask_load();
    out_.line("return score;\n}}\n");
  }

  void write_mask_load() {
    const TensorType& type = node_.operand_type(3);
    IndexScope scope = out_.scope;
    std::vector<Dim> all = out_.decode(batch_dims_, "batch", "n", scope);
    all.push_back(TemplateText::named(scope, "row", queries_));
    all.push_back(TemplateText::named(scope, "key", keys_));
    std::vector<Dim> index;
    for (size_t i = 0; i < type.rank(); ++i)
      index.push_back(type.shape[i] == Dim(1) ? Dim(0) : all[all.size() - type.rank() + i]);
    const std::string place = scope.text(storage_offset(type.layout, type.shape, index));
    if (type.dtype == DType::kBool) {
      out_.line("if (mask[{}] == 0) return -__int_as_float(0x7f800000);\n", place);
      return;
    }
    const std::string load = type.dtype == DType::kF16    ? fmt::format("load_f16(mask + {})", place)
                             : type.dtype == DType::kBF16 ? fmt::format("load_bf16(mask + {})", place)
                                                          : fmt::format("(f32)mask[{}]", place);
    out_.line("score += {};\n", load);
  }

  void write_kernel() {
    out_.line(
        "extern \"C\" __global__ void __launch_bounds__(128) {} ingot_kernel(const u16* q, const u16* k, "
        "const u16* v, ",
        splits_ > 1 ? fmt::format("__cluster_dims__({})", splits_) : "");
    if (node_.has_operand(3)) out_.line("const Mask* mask, ");
    out_.line("u16* result, ");
    for (size_t i = 0; i < out_.symbols.size(); ++i) out_.line("i64 a{}, ", i);
    out_.line("char* scratch, i32* status) {{\nextern __shared__ __align__(128) char shared[];\n");
    if (!node_.has_operand(3)) out_.line("const Mask* const mask = nullptr;\n");
    out_.declare_symbols();
    out_.line("const Operands x = {{q, k, v, is_aligned(q) && is_aligned(k) && is_aligned(v), {}, {}{}}};\n",
              out_.scope.text(queries_), out_.scope.text(keys_), out_.symbol_fields());
    out_.line("let_next_start();\nwait_for_previous();\nconst idx down = (x.queries + kRows - 1) / kRows;\n");
    out_.line("for (idx tile = blockIdx.x / kSplits; tile < down * {}; tile += gridDim.x / kSplits)\n",
              out_.scope.text(batch_));
    out_.line(
        "attend(shared, blockIdx.x % kSplits, mask, result, tile / down, tile % down * kRows, x);\n}}\n");
  }

  const Node& node_;
  const ops::Attention attributes_;
  TemplateText out_;
  std::vector<Dim> batch_dims_;
  Dim batch_ = 1, queries_, keys_;
  int64_t width_ = 0, value_width_ = 0;
  int warp_rows_ = 1, splits_ = 1;
};

}  // namespace

bool is_tensor_core_attention(const Node& node) {
  if (node.op != &ops::attention) return false;
  for (size_t i = 0; i < 3; ++i) {
    const TensorType& type = node.operand_type(i);
    if (!is_half(type.dtype) || !is_last_innermost(type) || !has_fragments(type)) return false;
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

TemplateKernel write_attention(const Node& node, const SymbolTable& symbols, std::string_view architecture) {
  return AttentionWriter(node, symbols, limits_of(architecture).clusters).write();
}

}  // namespace ingot::core::cuda
