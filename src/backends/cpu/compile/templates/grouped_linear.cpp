// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/grouped_linear.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/templates/epilogue.h"
#include "backends/cpu/compile/templates/matrix_tile.h"
#include "backends/cpu/compile/templates/panel.h"
#include "backends/cpu/compile/templates/plain_rows.h"
#include "backends/cpu/compile/templates/scaffold.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/cpu/compile/templates/tile.h"

namespace ingot::core::cpu {

namespace {

// Bytes of x that stay in the caches while the panels of a group pass. An estimate from cache sizes.
constexpr int64_t kBlockBytes = 1 << 20;

struct GroupedProblem {
  SymbolTable symbols;
  std::vector<TensorType> operands;
  loops::Kernel epilogue;
  Dim rows;
  int64_t groups, columns, depth;
  TileShape tile;

  int64_t steps() const { return depth / tile.group(); }
  int64_t panels() const { return ceil_divide(columns, tile.columns()); }
  int64_t block_rows() const {
    const int64_t tiles = kBlockBytes / (tile.rows * row_bytes(tile.a, depth));
    return std::max<int64_t>(tiles, 1) * tile.rows;
  }

  // Scratch: sums, row pointers, the converted panel or packed rows.
  int64_t table_bytes() const { return round_up(tile.rows * int64_t{sizeof(void*)}, 64); }
  int64_t converted_bytes() const {
    return is_narrow(tile) ? steps() * converted_tile(tile).step_bytes() : 0;
  }
  int64_t packed_bytes() const { return tile.by_matrices ? tile.rows * packed_row_bytes(steps()) : 0; }
};

class GroupedKernel {
 public:
  GroupedKernel(const GroupedProblem& problem, CpuFeatures features)
      : problem_(problem),
        scaffold_(features, "grouped_linear", problem.symbols),
        builder_(scaffold_.builder),
        of_stored_(tiles(problem.tile)),
        epilogue_(
            scaffold_.code,
            tile_epilogue(
                problem.epilogue,
                {1, {}, problem.tile.rows, problem.tile.columns(), whole_columns(), problem.tile.sum()})) {
    if (is_narrow(problem.tile)) of_converted_.emplace(tiles(converted_tile(problem.tile)));
  }

  Image emit(const std::vector<std::string>& arguments) {
    constexpr size_t kOperands = 3;
    epilogue_.load_arguments(scaffold_, kOperands, arguments, kOperands);
    rows_ = scaffold_.dims.emit(problem_.rows);
    begin_matrices(builder_, problem_.tile);
    const std::vector<llvm::Value*> ends =
        emit_carrying_loop(builder_, number(0), number(problem_.groups), 1, std::vector{number(0)},
                           [&](llvm::Value* group, std::span<llvm::Value* const> begin) {
                             llvm::Value* end = larger(begin[0], scaffold_.smaller(end_of(group), rows_));
                             emit_group(group, begin[0], end);
                             return std::vector{end};
                           });
    end_matrices(builder_, problem_.tile);
    emit_rows_without_group(ends[0]);
    return scaffold_.finish();
  }

 private:
  llvm::Value* number(int64_t value) { return scaffold_.number(value); }
  llvm::Value* larger(llvm::Value* a, llvm::Value* b) {
    return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
  }
  bool whole_columns() const { return problem_.columns % problem_.tile.columns() == 0; }
  TileFunctions tiles(const TileShape& tile) {
    return {scaffold_.code, tile, operand_of(tile), {1, problem_.steps(), std::nullopt}, true};
  }
  llvm::Value* table() { return scaffold_.scratch(problem_.tile.sums_bytes()); }
  llvm::Value* converted() { return scaffold_.scratch(problem_.tile.sums_bytes() + problem_.table_bytes()); }
  llvm::Value* end_of(llvm::Value* group) {
    llvm::Type* type = stored_type(builder_, problem_.operands[2].dtype);
    llvm::Value* place = builder_.CreateGEP(type, scaffold_.buffers[2], group);
    return builder_.CreateSExt(builder_.CreateLoad(type, place), builder_.getInt64Ty());
  }

  void emit_group(llvm::Value* group, llvm::Value* begin, llvm::Value* end) {
    emit_loop(builder_, begin, end, problem_.block_rows(), [&](llvm::Value* first) {
      llvm::Value* last = scaffold_.smaller(end, scaffold_.plus(first, problem_.block_rows()));
      scaffold_.for_each_item([&](llvm::Value* panel) { emit_panel(group, panel, first, last); });
    });
  }

  void emit_panel(llvm::Value* group, llvm::Value* panel, llvm::Value* first, llvm::Value* last) {
    llvm::Value* place = builder_.CreateNSWAdd(scaffold_.times(group, problem_.panels()), panel);
    llvm::Value* stored = scaffold_.byte_at(
        scaffold_.buffers[1], scaffold_.times(place, problem_.steps() * problem_.tile.step_bytes()));
    if (!of_converted_) return emit_tiles(of_stored_, stored, stored, panel, first, last);
    llvm::Value* rows = builder_.CreateNSWSub(last, first);
    emit_if(
        builder_, builder_.CreateICmpSGT(rows, number(problem_.tile.rows)),
        [&] {
          convert_panel(scaffold_, problem_.tile, problem_.steps(), stored, converted());
          emit_tiles(*of_converted_, converted(), stored, panel, first, last);
        },
        [&] { emit_tiles(of_stored_, stored, stored, panel, first, last); });
  }

  // Row pointers, or rows for matrix registers.
  MatrixRows rows_of_a(llvm::Value* row, llvm::Value* rows) {
    if (problem_.tile.by_matrices) return matrix_rows(row, rows);
    fill_plain_rows({builder_, scaffold_.dims, scaffold_.buffers, row, rows, number(0), table(),
                     stored_type(builder_, problem_.tile.a), nullptr},
                    problem_.depth, 0, problem_.tile.rows);
    return {table(), number(0)};
  }
  MatrixRows matrix_rows(llvm::Value* row, llvm::Value* rows) {
    const MatrixRows packed{converted(), number(packed_row_bytes(problem_.steps()))};
    llvm::Value* bytes = number(row_bytes(problem_.tile.a, problem_.depth));
    llvm::Value* first = scaffold_.byte_at(scaffold_.buffers[0], builder_.CreateNSWMul(row, bytes));
    return choose_rows(scaffold_, {first, bytes}, packed, rows, number(problem_.steps()));
  }

  void emit_tiles(const TileFunctions& tiles, llvm::Value* b, llvm::Value* stored, llvm::Value* panel,
                  llvm::Value* first, llvm::Value* last) {
    llvm::Value* count = scaffold_.ceil_divide(builder_.CreateNSWSub(last, first), problem_.tile.rows);
    llvm::Value* next =  // or the first one of the next group
        scaffold_.byte_at(stored, number(problem_.steps() * problem_.tile.step_bytes()));
    emit_loop(builder_, first, last, problem_.tile.rows, [&](llvm::Value* row) {
      llvm::Value* rows = rows_from(row, last);
      const MatrixRows a = rows_of_a(row, rows);
      llvm::Value* tile = builder_.CreateUDiv(builder_.CreateNSWSub(row, first), number(problem_.tile.rows));
      const PrefetchedShare share =
          prefetched_by(scaffold_, problem_.tile, problem_.steps(), {tile, count, stored, next});
      tiles.call(builder_, rows,
                 {a.start, a.stride, number(1), number(problem_.steps()), b, scaffold_.scratch(0), share.from,
                  share.stride});
      emit_epilogue(row, rows, panel);
    });
  }

  llvm::Value* rows_from(llvm::Value* row, llvm::Value* end) {
    return scaffold_.smaller(builder_.CreateNSWSub(end, row), number(problem_.tile.rows));
  }
  void emit_epilogue(llvm::Value* row, llvm::Value* rows, llvm::Value* panel) {
    const int64_t width = problem_.tile.columns();
    llvm::Value* column = scaffold_.times(panel, width);
    llvm::Value* columns =
        scaffold_.smaller(builder_.CreateNSWSub(number(problem_.columns), column), number(width));
    epilogue_.call(builder_, scaffold_.scratch(0), row, rows, column, columns);
  }

  void emit_rows_without_group(llvm::Value* begin) {
    const TileShape& tile = problem_.tile;
    llvm::Value* zeros = llvm::Constant::getNullValue(stored_type(builder_, tile.sum(), tile.lanes));
    for (int64_t place = 0; place < tile.sums_bytes(); place += tile.vector_bytes())
      store_lanes(builder_, tile.sum(), zeros, scaffold_.scratch(place));
    emit_loop(builder_, begin, rows_, problem_.tile.rows, [&](llvm::Value* row) {
      scaffold_.for_each_item([&](llvm::Value* panel) { emit_epilogue(row, rows_from(row, rows_), panel); });
    });
  }

  const GroupedProblem& problem_;
  Scaffold scaffold_;
  Builder& builder_;
  TileFunctions of_stored_;
  std::optional<TileFunctions> of_converted_;
  EpilogueFunction epilogue_;
  llvm::Value* rows_ = nullptr;
};

TileShape grouped_tile(std::span<const TensorType> operands, CpuFeatures features) {
  return choose_tile(*operands[1].shape[1].constant(), features, operands[0].dtype, operands[1].dtype);
}

}  // namespace

Fit supports_grouped_linear(std::span<const TensorType> operands, CpuFeatures features) {
  const TensorType& weights = operands[1];
  if (!is_floating(operands[0].dtype) || !has_tiles(operands[0].dtype, weights.dtype, features))
    return {false, fmt::format("the grouped_linear template does not multiply {} and {}",
                               name(operands[0].dtype), name(weights.dtype))};
  for (const Dim& dim : weights.shape) {
    if (!dim.is_constant()) return {false, "the grouped_linear template requires weights of constant size"};
    if (dim == Dim(0)) return {false, "the product is empty"};
  }
  const int group = grouped_tile(operands, features).group();
  if (*weights.shape[2].constant() % group != 0)
    return {false, fmt::format("groups of {} numbers do not fill the depth", group)};
  return {};
}

LayoutRequest grouped_linear_layouts(std::span<const TensorType> operands, CpuFeatures features) {
  const TileShape tile = grouped_tile(operands, features);
  return {{Layout{}, panel_layout(std::array{0, 1, 2}, 1, tile), Layout{}}, {std::nullopt}};
}

TemplateKernel plan_grouped_linear(std::span<const TensorType> operands, const loops::Kernel& epilogue,
                                   const SymbolTable& symbols, const Target& target) {
  const Shape& weights = operands[1].shape;
  GroupedProblem problem{symbols,
                         {operands.begin(), operands.end()},
                         epilogue,
                         operands[0].shape[0],
                         *weights[0].constant(),
                         *weights[1].constant(),
                         *weights[2].constant(),
                         grouped_tile(operands, features_of(target))};
  TemplateKernel plan;
  plan.launch.symbols = symbol_arguments(epilogue, operands, {});
  plan.launch.work_items = problem.panels();
  // As for panels of one weight: the products, or the panels of the groups that have rows.
  constexpr int64_t kManyRows = 64;
  const int64_t rows = problem.rows.constant().value_or(kManyRows);
  const int64_t panel = problem.depth * problem.tile.columns();
  plan.launch.item_cost = std::max(panel * rows / problem.tile.products_a_nanosecond(),
                                   panel * std::min(rows, problem.groups) / 4);
  plan.launch.scratch_bytes =
      problem.tile.sums_bytes() + problem.table_bytes() + problem.converted_bytes() + problem.packed_bytes();
  plan.key = fmt::format("grouped_linear {}", to_string(problem.tile)) +
             describe_problem(operands, epilogue, plan.launch.symbols, symbols);
  plan.compile = [problem = std::move(problem), features = features_of(target),
                  arguments = plan.launch.symbols] {
    return GroupedKernel(problem, features).emit(arguments);
  };
  return plan;
}

}  // namespace ingot::core::cpu
