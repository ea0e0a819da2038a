// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/contraction_epilogue.h"

#include <algorithm>

#include "backends/cuda/compile/column_terms.h"
#include "backends/cuda/compile/epilogue_reads.h"
#include "backends/cuda/compile/expression_text.h"
#include "backends/cuda/compile/type_text.h"
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
        products_({{node_, "x", ""}}),
        reads_(epilogue_reads(epilogue_, column_, wide_, [&](size_t buffer) {
          return norms_.find(buffer) != nullptr || (twin_ && buffer == twin_.buffer);
        })) {
    if (twin_) products_.push_back({*twin_.node, "y", "twin_"});
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
    write_loads_at("load_elements_at", "load_elements(n, row, column, kind)", reads_.has_any());
    if (columns_are_weights) out_.line("load_columns_at(begin);\n");
    for (size_t i = 0; i < norms_.statistics.size(); ++i)
      out_.line("OwnMoments<{}> own_moments{};\n", norms_.statistics[i].parts, i);
    out_.line("const auto begin_epilogue = [&] {{\n{}load_elements_at(begin);\n",
              columns_are_weights ? "" : "load_columns_at(begin);\n");
    for (size_t i = 0; i < norms_.statistics.size(); ++i)
      out_.line("load_moments(own_moments{0}, moments{0}, share, first_row, x);\n", i);
    out_.line("}};\nconst auto end_products = [&] {{\n");
    for (size_t i = 0; i < norms_.statistics.size(); ++i) {
      out_.line("keep_statistics<{0}, {1}>(own_moments{2}, shared, {2}, share, {3:a}f, ",
                norms_.statistics[i].parts, norms_.statistics[i].centered, i, epsilon(i));
      write_kept_statistics(i);
    }
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
    if (wide_ == kEight && stores_neighbours()) {
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
      return is_multiple_of_eight(storage_offset(type.layout, type.shape, index), column_);
    };
    return stores_neighbours() && is_whole(static_cast<size_t>(stored.store->buffer), stored.store->index) &&
           std::ranges::all_of(reads_.wide,
                               [&](const EpilogueRead& load) { return is_whole(load.buffer, load.index); });
  }

  // The same where a thread finishes eight of a number of columns that is a multiple of them.
  bool has_whole_tiles() const {
    const auto columns = shape_.columns.constant();
    return wide_ == kEight && columns && *columns > 0 && *columns % kEight == 0 && has_whole_eights();
  }

  // " && is_aligned(...)" of each buffer that has them.
  std::string alignment_text() const {
    std::string text = fmt::format(" && is_aligned(b{})", stored_stage().store->buffer);
    for (const EpilogueRead& load : reads_.wide) text += fmt::format(" && is_aligned(b{})", load.buffer);
    for (const ColumnTerms& product : products_) text += product.alignment_text();
    return text;
  }

  void write_eight() {
    write_functions();
    const loops::Stage& stored = stored_stage();
    const loops::Buffer& buffer = buffer_of(stored.store->buffer);
    const std::string result = fmt::format("b{}", stored.store->buffer);
    out_.line("const auto load_eight = [&](int n, idx row, idx column, auto kind) {{\n");
    if (has_columns()) out_.line("if (n % kAtOnce == 0) load_columns(n, column, kind);\n");
    if (reads_.has_any()) out_.line("load_elements(n, row, column, kind);\n");
    out_.line("}};\n");
    out_.line(
        "const auto finish_eight = [&](int n, idx row, idx column, const f32 (&sums)[8], auto kind, "
        "bool stores) {{\n");
    out_.line("{} values[8];\n#pragma unroll\nfor (int k = 0; k < 8; ++k) ", type_name(stored.value->dtype));
    out_.line("values[k] = finish(row, column + k, sums[k], n, k);\nif (!stores) return;\n");
    if (stores_neighbours()) {
      out_.line("{}* const to = {} + place_of(row, column);\n", storage_name(buffer.type.dtype), result);
      out_.line("if (decltype(kind)::is_certain || is_aligned(to)) return store_eight<{}>(to, values);\n",
                buffer.type.dtype == DType::kBF16);
    }
    out_.line("#pragma unroll\nfor (int k = 0; k < 8; ++k)\n");
    out_.text += store_text(buffer, result, "place_of(row, column + k)", "values[k]");
    out_.line("}};\n");
  }

  // The kAtOnce groups of a chunk have the same columns.
  void write_take_loads() {
    out_.line(
        "const auto take_loads = [&](int s) {{\n#pragma unroll\nfor (int n = 0; n < kAtOnce; ++n) {{\n");
    for (const EpilogueRead& load : reads_.wide)
      out_.line("wide{0}[n] = wide{0}[(1 + s) * kAtOnce + n];\n", load.buffer);
    for (const EpilogueRead& load : reads_.of_row)
      out_.line("of_row{0}[n] = of_row{0}[(1 + s) * kAtOnce + n];\n", load.buffer);
    for (const ColumnTerms& product : products_) product.write_takes(out_);
    out_.line("}}\n}};\n");
  }

 private:
  const loops::Stage& stored_stage() const {
    const loops::Stage& stored = epilogue_.stages.back();
    invariant(stored.store.has_value(), "an epilogue stores what it computes last");
    return stored;
  }

  // The function that stores what others read of the statistics of a row: those of the first columns do.
  void write_kept_statistics(size_t source) {
    out_.line("[&](int row, const Pair& statistics) {{\n");
    for (size_t i = 0; i < norms_.kept.size(); ++i) {
      if (norms_.kept[i].source != source) continue;
      out_.line(
          "if (first_column == 0 && first_row + row < x.rows) kept{}[first_row + row] = statistics.{};\n", i,
          norms_.kept[i].is_scale ? "second" : "first");
    }
    out_.line("}});\n");
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

  bool stores_neighbours() const {
    const loops::Store& store = *stored_stage().store;
    return are_neighbours(buffer_of(store.buffer), store.index, column_, wide_);
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
    for (const EpilogueRead& load : reads_.wide) {
      const DType dtype = epilogue_.buffers[load.buffer].type.dtype;
      out_.line("{} wide{}[kLoads];\n", group_of(dtype, wide_), load.buffer);
      write_place(fmt::format("wide{}_place", load.buffer), epilogue_.buffers[load.buffer], load.index);
    }
    for (const EpilogueRead& load : reads_.of_row) {
      out_.line("f32 of_row{}[kLoads];\n", load.buffer);
      write_place(fmt::format("of_row{}_place", load.buffer), epilogue_.buffers[load.buffer], load.index);
    }
    for (size_t i = 0; i < norms_.statistics.size(); ++i) out_.line("Pair statistics{}[kAtOnce];\n", i);
    write_column_loads();
    if (!reads_.has_any()) return;
    out_.line("const auto load_elements = [&](int n, idx row, idx column, auto kind) {{\n");
    for (const EpilogueRead& load : reads_.wide)
      out_.line("load_group(kind, wide{0}[n], b{0} + wide{0}_place(row, column), x.columns - column);\n",
                load.buffer);
    for (const EpilogueRead& load : reads_.of_row)
      out_.line("of_row{0}[n] = b{0}[of_row{0}_place(row, column)];\n", load.buffer);
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
    for (const EpilogueRead& load : reads_.wide)
      writer.replace_buffer(
          static_cast<int>(load.buffer),
          fmt::format("number_of<{}>(wide{}[n], k)",
                      epilogue_.buffers[load.buffer].type.dtype == DType::kBF16, load.buffer));
    for (const EpilogueRead& load : reads_.of_row)
      writer.replace_buffer(static_cast<int>(load.buffer), fmt::format("of_row{}[n]", load.buffer));
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
  const EpilogueReads reads_;
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
  for (size_t i = 0; i < site.norms.kept.size(); ++i) site.out.line("f32* kept{}, ", i);
  site.out.text += prologue_arguments(site.prologue);
  for (size_t i = 1; site.twin && i < site.twin.node->operands.size(); ++i) {
    if (site.twin.node->has_operand(i))
      site.out.line("const {}* y{}, ", storage_name(site.twin.node->operand_type(i).dtype), i);
  }
  for (size_t i = 0; i < site.out.symbols.size(); ++i) site.out.line("i64 a{}, ", i);
}

}  // namespace ingot::core::cuda
