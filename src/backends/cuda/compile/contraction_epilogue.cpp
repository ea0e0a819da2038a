// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/contraction_epilogue.h"

#include <algorithm>

#include "backends/cuda/compile/column_terms.h"
#include "backends/cuda/compile/expression_text.h"
#include "backends/cuda/compile/tensor_core_types.h"
#include "backends/cuda/compile/type_text.h"
#include "loops/rewrite.h"
#include "ops/normalization.h"
#include "ops/ops.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

class EpilogueWriter {
 public:
  explicit EpilogueWriter(const EpilogueSite& site)
      : node_(site.node),
        twin_(site.twin),
        shape_(site.shape),
        epilogue_(site.epilogue),
        norms_(site.norms),
        wide_(site.wide),
        out_(site.out),
        column_(Dim::symbol(epilogue_.parallel[shape_.column_dim].variable)),
        products_({{node_, "x", ""}}) {
    if (twin_) products_.push_back({*twin_.node, "y", "twin_"});
    for (size_t i = 1; i < epilogue_.buffers.size(); ++i) {
      if (twin_ && i == twin_.buffer) continue;
      if (const auto index = neighbours_read(i)) wide_loads_.push_back({i, *index});
    }
  }

  // What the first elements of a thread read besides sums is on its way while products are computed; what
  // belongs to columns alone, while the kernel waits for the one before, if it is weights.
  void write_loads(bool columns_are_weights) {
    out_.line("constexpr int kAcross = kColumns / kWide, kShare = kRows * kAcross / kSplits;\n");
    out_.line("constexpr int kAtOnce = kShare > kThreads ? 2 : 1, kLoads = kAtOnce;\n");
    out_.line("const int begin = share * kShare + threadIdx.x, end = (share + 1) * kShare;\n");
    out_.line("const auto column_of = [&](idx column) {{\n");
    out_.line("return least<idx>(column, x.columns - (decltype(kind)::is_certain ? kWide : 1));\n}};\n");
    write_functions();
    write_loads_at("load_columns_at", "load_columns(n, column, kind)", has_columns());
    write_loads_at("load_elements_at", "load_elements(n, row, column, kind)", !wide_loads_.empty());
    if (columns_are_weights) out_.line("load_columns_at(begin);\n");
    for (size_t i = 0; i < norms_.statistics.size(); ++i)
      out_.line("OwnMoments<{}> own_moments{};\n", norms_.statistics[i].parts, i);
    out_.line("const auto begin_epilogue = [&] {{\n{}load_elements_at(begin);\n",
              columns_are_weights ? "" : "load_columns_at(begin);\n");
    for (size_t i = 0; i < norms_.statistics.size(); ++i)
      out_.line("load_moments(own_moments{0}, moments{0}, share, first_row, x);\n", i);
    out_.line("}};\nconst auto end_products = [&] {{\n");
    for (size_t i = 0; i < norms_.statistics.size(); ++i)
      out_.line("keep_statistics<{0}, {1}>(own_moments{2}, shared, {2}, share, {3:a}f);\n",
                norms_.statistics[i].parts, norms_.statistics[i].centered, i, epsilon(i));
    out_.line("}};\n");
  }

  // A thread has kWide contiguous elements of a row at a time, twice: all are loaded and computed before the
  // first is stored, since a store could alias the next load. Beyond the edge the last element is recomputed.
  void write() {
    const loops::Stage& stored = stored_stage();
    const loops::Buffer& buffer = buffer_of(stored.store->buffer);
    const std::string result = fmt::format("b{}", stored.store->buffer);
    out_.line("constexpr int kRounds = (kShare + kAtOnce * kThreads - 1) / (kAtOnce * kThreads);\n");
    out_.line("#pragma unroll 1\nfor (int round = 0; round < kRounds; ++round) {{\n");
    out_.line("const int i = begin + round * kAtOnce * kThreads;\nif (i >= end) break;\n");
    out_.line("{} values[kAtOnce][kWide];\n", type_name(stored.value->dtype));
    out_.line("if (kRounds > 1 && round > 0) load_columns_at(i), load_elements_at(i);\n");
    out_.line("#pragma unroll\nfor (int n = 0; n < kAtOnce; ++n) {{\n");
    out_.line("const int at = least(i + n * kThreads, end - 1), across = at % kAcross * kWide;\n");
    out_.line("f32 sums[kWide];\nadd_shares_of(sums, shared, at / kAcross, across);\n");
    out_.line("const idx row = least<idx>(first_row + at / kAcross, x.rows - 1);\n");
    for (size_t i = 0; i < norms_.statistics.size(); ++i)
      out_.line("statistics{0}[n] = statistics_in(shared, {0})[at / kAcross];\n", i);
    out_.line("const idx begin_column = column_of(first_column + across);\n");
    out_.line("#pragma unroll\nfor (int k = 0; k < kWide; ++k) {{\n");
    out_.line(
        "const idx column = decltype(kind)::is_certain ? begin_column + k : least<idx>(begin_column + k, "
        "x.columns - 1);\n");
    const char* const twin_sum = twin_ ? "twin_sum(shared, at / kAcross, across + k), " : "";
    out_.line("values[n][k] = finish(row, column, sums[k], {}n, k);\n}}\n", twin_sum);
    if (norms_.keeps_moments)
      out_.line(
          "keep_moments<kShare % 32 == 0>(kept_moments, values[n], row, first_column + across, i + n * "
          "kThreads < end && first_row + "
          "at / kAcross < x.rows && first_column + across < x.columns, x);\n");
    out_.line("}}\n");
    out_.line("#pragma unroll\nfor (int n = 0; n < kAtOnce; ++n) {{\n");
    out_.line("const int at = i + n * kThreads;\nconst idx column = first_column + at % kAcross * kWide;\n");
    out_.line("const idx row = first_row + at / kAcross;\nif (at >= end || row >= x.rows) break;\n");
    if (wide_ == kEight && are_neighbours(buffer, stored.store->index)) {
      out_.line("{}* const to = {} + place_of(row, column);\n", storage_name(buffer.type.dtype), result);
      out_.line("if (decltype(kind)::is_certain && column >= x.columns) continue;\n");
      out_.line("if (decltype(kind)::is_certain || (column + 8 <= x.columns && is_aligned(to))) {{\n");
      out_.line("store_eight<{}>(to, values[n]);\ncontinue;\n}}\n", buffer.type.dtype == DType::kBF16);
    }
    out_.line("#pragma unroll\nfor (int k = 0; k < kWide; ++k) {{\nif (column + k < x.columns)\n");
    out_.text += store_text(buffer, result, "place_of(row, column + k)", "values[n][k]");
    out_.line("}}\n}}\n}}\n");
  }

  // Whether all groups of eight that are loaded and stored are aligned if buffers are.
  bool has_whole_eights() const {
    const loops::Stage& stored = stored_stage();
    const auto is_whole = [&](size_t buffer, const std::vector<Dim>& index) {
      const TensorType& type = epilogue_.buffers[buffer].type;
      return is_multiple(storage_offset(type.layout, type.shape, index));
    };
    const auto buffer = static_cast<size_t>(stored.store->buffer);
    return are_neighbours(epilogue_.buffers[buffer], stored.store->index) &&
           is_whole(buffer, stored.store->index) &&
           std::ranges::all_of(wide_loads_,
                               [&](const WideLoad& load) { return is_whole(load.buffer, load.index); });
  }

  // The same where a thread finishes eight of a number of columns that is a multiple of them.
  bool has_whole_tiles() const {
    const auto columns = shape_.columns.constant();
    return wide_ == kEight && columns && *columns > 0 && *columns % kEight == 0 && has_whole_eights();
  }

  // " && is_aligned(...)" of each buffer that has them.
  std::string alignment_text() const {
    std::string text = fmt::format(" && is_aligned(b{})", stored_stage().store->buffer);
    for (const WideLoad& load : wide_loads_) text += fmt::format(" && is_aligned(b{})", load.buffer);
    for (const ColumnTerms& product : products_) text += product.alignment_text();
    return text;
  }

  void write_eight() {
    write_functions();
    const loops::Stage& stored = stored_stage();
    const loops::Buffer& buffer = buffer_of(stored.store->buffer);
    const std::string result = fmt::format("b{}", stored.store->buffer);
    out_.line("const auto load_eight = [&](int n, idx row, idx column, auto kind) {{\n");
    if (has_columns()) out_.line("load_columns(n, column, kind);\n");
    if (!wide_loads_.empty()) out_.line("load_elements(n, row, column, kind);\n");
    out_.line("}};\n");
    out_.line(
        "const auto finish_eight = [&](int n, idx row, idx column, const f32 (&sums)[8], auto kind) {{\n");
    out_.line("{} values[8];\n#pragma unroll\nfor (int k = 0; k < 8; ++k) ", type_name(stored.value->dtype));
    out_.line("values[k] = finish(row, column + k, sums[k], n, k);\n");
    if (are_neighbours(buffer, stored.store->index)) {
      out_.line("{}* const to = {} + place_of(row, column);\n", storage_name(buffer.type.dtype), result);
      out_.line("if (decltype(kind)::is_certain || is_aligned(to)) return store_eight<{}>(to, values);\n",
                buffer.type.dtype == DType::kBF16);
    }
    out_.line("#pragma unroll\nfor (int k = 0; k < 8; ++k)\n");
    out_.text += store_text(buffer, result, "place_of(row, column + k)", "values[k]");
    out_.line("}};\n");
  }

  void write_take_loads() {
    out_.line(
        "const auto take_loads = [&](int s) {{\n#pragma unroll\nfor (int n = 0; n < kAtOnce; ++n) {{\n");
    for (const WideLoad& load : wide_loads_)
      out_.line("wide{0}[n] = wide{0}[(1 + s) * kAtOnce + n];\n", load.buffer);
    for (const ColumnTerms& product : products_) product.write_takes(out_);
    out_.line("}}\n}};\n");
  }

 private:
  struct WideLoad {
    size_t buffer;
    std::vector<Dim> index;
  };

  const loops::Stage& stored_stage() const {
    const loops::Stage& stored = epilogue_.stages.back();
    invariant(stored.store.has_value(), "an epilogue stores what it computes last");
    return stored;
  }

  // NAME(i): `load` of the kAtOnce groups of a thread from the i-th group of the tile on.
  void write_loads_at(std::string_view name, std::string_view load, bool is_any) {
    out_.line("const auto {} = [&](int i) {{\n", name);
    if (is_any) {
      out_.line("#pragma unroll\nfor (int n = 0; n < kAtOnce; ++n) {{\n");
      out_.line("const int at = least(i + n * kThreads, end - 1);\n");
      out_.line("const idx row = least<idx>(first_row + at / kAcross, x.rows - 1);\n");
      out_.line("const idx column = column_of(first_column + at % kAcross * kWide);\n");
      out_.line("{};\n}}\n", load);
    }
    out_.line("}};\n");
  }

  // place_of, load_columns and load_elements if there is something to load, and
  // finish(row, column, sum, n, k), where n counts a thread's groups; of twins with the other's sum behind
  // its own.
  void write_functions() {
    const loops::Stage& stored = stored_stage();
    write_place("place_of", buffer_of(stored.store->buffer), stored.store->index);
    write_wide_loads();
    out_.line("const auto finish = [&](idx row, idx column, f32 sum, {}int n, int k) {{\n",
              twin_ ? "f32 twin_sum, " : "");
    write_value();
    out_.line("}};\n");
  }

  const loops::Buffer& buffer_of(int buffer) const { return epilogue_.buffers[static_cast<size_t>(buffer)]; }
  bool has_columns() const {
    return std::ranges::any_of(products_, [](const ColumnTerms& product) { return product.has_any(); });
  }
  float epsilon(size_t source) const { return static_cast<float>(norms_.statistics[source].epsilon); }

  // Whether `wide` columns from a multiple of it on are contiguous floating-point elements at `index`.
  bool are_neighbours(const loops::Buffer& buffer, const std::vector<Dim>& index) const {
    const Layout& layout = buffer.type.layout;
    if (!has_tensor_cores(buffer.type.dtype) || index.empty()) return false;
    if (layout.is_row_major()) return index.back() == column_;
    const LayoutAxis& inner = layout.axes.back();
    return index[static_cast<size_t>(inner.dim)] == column_ && inner.divisor == 1 &&
           inner.modulus % wide_ == 0;
  }

  // Whether a place is a multiple of eight where the column is.
  bool is_multiple(const Dim& place) const {
    const auto operands = place.operands();
    const auto is_own = [&](const Dim& operand) { return is_multiple(operand); };
    switch (place.kind()) {
      case Dim::Kind::kConstant:
        return *place.constant() % kEight == 0;
      case Dim::Kind::kSymbol:
        return place == column_;
      case Dim::Kind::kMultiply:
        return std::ranges::any_of(operands, is_own);
      case Dim::Kind::kAdd:
      case Dim::Kind::kModulo:
        return std::ranges::all_of(operands, is_own);
      default:
        return false;
    }
  }

  // The index if all loads of a buffer read contiguous elements that exist for every column.
  std::optional<std::vector<Dim>> neighbours_read(size_t number) const {
    std::optional<std::vector<Dim>> index;
    bool one = true;
    for (const loops::Stage& stage : epilogue_.stages) {
      one = one && stage.bindings.empty();
      loops::visit(stage.value, [&](const loops::Expr& node) {
        if (node->kind != loops::ExprNode::Kind::kLoad || node->buffer != static_cast<int>(number)) return;
        const std::vector<Dim> own(node->index.begin(), node->index.end());
        one = one && (!index || *index == own);
        index = own;
      });
    }
    const loops::Buffer& buffer = epilogue_.buffers[number];
    if (!one || !index || !are_neighbours(buffer, *index)) return std::nullopt;
    for (size_t dim = 0; dim < index->size(); ++dim) {
      if (!is_in_bounds((*index)[dim], buffer.type.shape[dim])) return std::nullopt;
    }
    return std::ranges::count(*index, column_) == 1 ? index : std::nullopt;
  }

  bool is_in_bounds(const Dim& index, const Dim& extent) const {
    if (index.is_constant()) return index == Dim(0) && range_of(extent, epilogue_.symbols).min > 0;
    return std::ranges::any_of(epilogue_.parallel, [&](const loops::Loop& loop) {
      return index == Dim::symbol(loop.variable) && loop.extent == extent;
    });
  }

  // NAME(row, column): the offset of a buffer's element at `index`.
  void write_place(std::string_view name, const loops::Buffer& buffer, const std::vector<Dim>& index) {
    IndexScope scope = out_.scope;
    out_.line("const auto {} = [&](idx row, idx column) {{\n", name);
    bind_loops(scope);
    out_.line("return {};\n}};\n", scope.text(storage_offset(buffer.type.layout, buffer.type.shape, index)));
  }

  // load_columns(n, column) and load_elements(n, row, column): what the group of elements from `column` on
  // reads besides their sums.
  void write_wide_loads() {
    for (const WideLoad& load : wide_loads_) {
      const DType dtype = epilogue_.buffers[load.buffer].type.dtype;
      out_.line("{} wide{}[kLoads];\n", group_of(dtype, wide_), load.buffer);
      write_place(fmt::format("wide{}_place", load.buffer), epilogue_.buffers[load.buffer], load.index);
    }
    for (size_t i = 0; i < norms_.statistics.size(); ++i) out_.line("Pair statistics{}[kAtOnce];\n", i);
    write_column_loads();
    if (wide_loads_.empty()) return;
    out_.line("const auto load_elements = [&](int n, idx row, idx column, auto kind) {{\n");
    for (const WideLoad& load : wide_loads_)
      out_.line("load_group(kind, wide{0}[n], b{0} + wide{0}_place(row, column), x.columns - column);\n",
                load.buffer);
    out_.line("}};\n");
  }

  void write_column_loads() {
    for (const ColumnTerms& product : products_) product.write_declarations(wide_, out_);
    if (!has_columns()) return;
    out_.line("const auto load_columns = [&](int n, idx column, auto kind) {{\n");
    for (const ColumnTerms& product : products_) product.write_loads(out_);
    out_.line("}};\n");
  }

  // The epilogue's parallel loops are the dims of the result, in order.
  void bind_loops(IndexScope& scope) {
    out_.decode(result_extents(node_, shape_.batch_dims), "batch", "n", scope);
    out_.decode(result_extents(node_, shape_.row_dims), "row", "r", scope);
    for (size_t i = 0; i < shape_.batch_dims.size(); ++i)
      scope.add(epilogue_.parallel[shape_.batch_dims[i]], fmt::format("n{}", i));
    for (size_t i = 0; i < shape_.row_dims.size(); ++i)
      scope.add(epilogue_.parallel[shape_.row_dims[i]], fmt::format("r{}", i));
    scope.add(epilogue_.parallel[shape_.column_dim], "column");
  }

  // The element at `row` and `column` of `batch`, whose products add up to `sum`.
  void write_value() {
    IndexScope scope = out_.scope;
    for (const ColumnTerms& product : products_) product.write_sum(norms_, out_);
    bind_loops(scope);
    std::vector<LocalAccess> locals;
    ExpressionWriter writer(epilogue_, locals, out_.text);
    writer.replace_buffer(0, "sum");
    if (twin_) writer.replace_buffer(static_cast<int>(twin_.buffer), "twin_sum");
    for (const StatisticBuffer& read : norms_.buffers)
      writer.replace_buffer(
          read.buffer, fmt::format("statistics{}[n].{}", read.source, read.is_scale ? "second" : "first"));
    for (const WideLoad& load : wide_loads_)
      writer.replace_buffer(
          static_cast<int>(load.buffer),
          fmt::format("number_of<{}>(wide{}[n], k)",
                      epilogue_.buffers[load.buffer].type.dtype == DType::kBF16, load.buffer));
    for (const loops::Stage& stage : epilogue_.stages) {
      invariant(!stage.store || &stage == &epilogue_.stages.back(), "an epilogue stores once");
      locals.push_back({writer.value(stage.value, scope, {}), {}});
    }
    out_.line("return {};\n", locals.back().name);
  }

  const Node& node_;
  const Twin twin_;
  const ProductShape& shape_;
  const loops::Kernel& epilogue_;
  const RowNorms& norms_;
  const int wide_;
  TemplateText& out_;
  const Dim column_;
  std::vector<ColumnTerms> products_;
  std::vector<WideLoad> wide_loads_;
};

}  // namespace

void write_epilogue_loads(const EpilogueSite& site, bool columns_are_weights) {
  EpilogueWriter(site).write_loads(columns_are_weights);
}

void write_contraction_epilogue(const EpilogueSite& site) { EpilogueWriter(site).write(); }

bool has_whole_eights(const EpilogueSite& site) { return EpilogueWriter(site).has_whole_eights(); }

bool has_whole_tiles(const EpilogueSite& site) { return EpilogueWriter(site).has_whole_tiles(); }

std::string epilogue_alignment(const EpilogueSite& site) { return EpilogueWriter(site).alignment_text(); }

void write_epilogue_functions(const EpilogueSite& site) { EpilogueWriter(site).write_eight(); }

void write_take_loads(const EpilogueSite& site) { EpilogueWriter(site).write_take_loads(); }

void write_operand_arguments(const EpilogueSite& site) {
  for (size_t i = 0; i < given_operands(site.node).size(); ++i) {
    if (site.node.has_operand(i) && (i > 0 || site.prologue == nullptr))
      site.out.line("const {}* x{}, ", storage_name(site.node.operand_type(i).dtype), i);
  }
  for (size_t i = 1; i < site.epilogue.buffers.size(); ++i) {
    const loops::Buffer& buffer = site.epilogue.buffers[i];
    if (site.norms.find(i) != nullptr || (site.twin && i == site.twin.buffer)) continue;
    site.out.line("{}{}* b{}, ", buffer.access == loops::Access::kRead ? "const " : "",
                  storage_name(buffer.type.dtype), i);
  }
  for (size_t i = 0; i < site.norms.statistics.size(); ++i) site.out.line("const f32* moments{}, ", i);
  if (site.norms.keeps_moments) site.out.line("f32* kept_moments, ");
  site.out.text += prologue_arguments(site.prologue);
  for (size_t i = 1; site.twin && i < site.twin.node->operands.size(); ++i) {
    if (site.twin.node->has_operand(i))
      site.out.line("const {}* y{}, ", storage_name(site.twin.node->operand_type(i).dtype), i);
  }
  for (size_t i = 0; i < site.out.symbols.size(); ++i) site.out.line("i64 a{}, ", i);
}

}  // namespace ingot::core::cuda
