// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/panel_kernel.h"

#include <fmt/format.h>

#include "backends/cpu/compile/templates/scaffold.h"
#include "backends/cpu/compile/templates/target.h"

namespace ingot::core::cpu {

namespace {

// MC: bytes of A that stay in the second-level cache (1 MiB and more) while the panels pass, with room for a
// panel of B. An estimate from cache sizes, not tuned.
constexpr int64_t kRowBlockBytes = 256 << 10;
// Below this, all rows are one block: each panel is then read from memory once, and A stays in the
// third-level cache.
constexpr int64_t kWholeRowsBytes = 2 << 20;

int64_t panels_of(const PanelProblem& problem) {
  return problem.groups * ceil_divide(problem.columns, problem.tile.columns());
}

int64_t sums_bytes(const TileShape& tile) {
  return int64_t{tile.rows} * tile.columns() * int64_t{sizeof(float)};
}

int64_t table_bytes(const PanelProblem& problem) {
  return ceil_divide(problem.segments * problem.tile.rows * int64_t{sizeof(void*)}, 64) * 64;
}

bool whole_columns(const PanelProblem& problem) { return problem.columns % problem.tile.columns() == 0; }

EpilogueShape epilogue_shape(const PanelProblem& problem) {
  EpilogueShape shape{
      problem.column_dim, {}, problem.tile.rows, problem.tile.columns(), whole_columns(problem)};
  if (problem.operands.size() > 2) shape.bias = problem.operands[2];
  return shape;
}

// Emits the kernel of one problem.
class PanelKernel {
 public:
  PanelKernel(const PanelProblem& problem, CpuFeatures features)
      : problem_(problem),
        scaffold_(features, problem.name, problem.symbols),
        builder_(scaffold_.builder),
        tiles_(scaffold_.code, problem.tile, TileOperand::kRows,
               {problem.segments, problem.count, problem.rows.constant()},
               /*prefetch=*/true),
        epilogue_(scaffold_.code, tile_epilogue(problem.epilogue, epilogue_shape(problem))) {}

  Image emit(const std::vector<std::string>& symbols) {
    epilogue_.load_arguments(scaffold_, problem_.operands.size(), symbols);
    if (problem_.begin) problem_.begin(request(nullptr, nullptr, nullptr));
    llvm::Value* rows = scaffold_.dims.emit(problem_.rows);
    llvm::Value* tiles = scaffold_.ceil_divide(rows, problem_.tile.rows);
    llvm::Value* block = tiles_a_block(tiles);
    scaffold_.for_each_item([&](llvm::Value* item) { emit_item(place_of(item, tiles, block), rows); });
    return scaffold_.finish();
  }

 private:
  llvm::Value* number(int64_t value) { return scaffold_.number(value); }

  RowRequest request(llvm::Value* row, llvm::Value* rows, llvm::Value* group) {
    int64_t table = sums_bytes(problem_.tile), extra = table + table_bytes(problem_);
    return {builder_, scaffold_.dims, scaffold_.buffers,        row,
            rows,     group,          scaffold_.scratch(table), scaffold_.scratch(extra)};
  }

  llvm::Value* tiles_a_block(llvm::Value* tiles) {
    int64_t tile_bytes = problem_.tile.rows * problem_.segments * problem_.count * int64_t{sizeof(float)};
    llvm::Value* fits = builder_.CreateICmpSLE(scaffold_.times(tiles, tile_bytes), number(kWholeRowsBytes));
    llvm::Value* block = number(std::max<int64_t>(kRowBlockBytes / tile_bytes, 1));
    return builder_.CreateSelect(fits, tiles, block);
  }

  // Item order: blocks of rows, within a block panels, within a panel tiles.
  struct Place {
    llvm::Value *panel, *tile, *tile_in_block;
  };
  Place place_of(llvm::Value* item, llvm::Value* tiles, llvm::Value* block) {
    llvm::Value* items_a_block = scaffold_.times(block, panels_of(problem_));
    llvm::Value* first = builder_.CreateNSWMul(builder_.CreateUDiv(item, items_a_block), block);
    llvm::Value* rest = builder_.CreateURem(item, items_a_block);
    llvm::Value* height = scaffold_.smaller(builder_.CreateNSWSub(tiles, first), block);
    llvm::Value* tile = builder_.CreateURem(rest, height);
    return {builder_.CreateUDiv(rest, height), builder_.CreateNSWAdd(first, tile), tile};
  }

  // The first tiles of a block prefetch the next panel, one cache line per step.
  llvm::Value* fetched_by(const Place& place, llvm::Value* b) {
    const int64_t depth = problem_.segments * problem_.count, width = problem_.tile.columns();
    const int64_t line = kCacheLine / int64_t{sizeof(float)};
    llvm::Value* next =
        builder_.CreateNSWAdd(number(depth * width), scaffold_.times(place.tile_in_block, depth * line));
    llvm::Value* fetches = builder_.CreateICmpSLT(scaffold_.times(place.tile_in_block, line), number(width));
    return scaffold_.float_at(b, builder_.CreateSelect(fetches, next, number(0)));
  }

  void emit_item(const Place& place, llvm::Value* all_rows) {
    int64_t width = problem_.tile.columns(), depth = problem_.segments * problem_.count;
    llvm::Value *panel = place.panel, *row = scaffold_.times(place.tile, problem_.tile.rows);
    llvm::Value* panels_a_group = number(panels_of(problem_) / problem_.groups);
    llvm::Value* group = builder_.CreateUDiv(panel, panels_a_group);
    llvm::Value* column = scaffold_.times(builder_.CreateURem(panel, panels_a_group), width);
    llvm::Value* rows = scaffold_.smaller(builder_.CreateNSWSub(all_rows, row), number(problem_.tile.rows));
    llvm::Value* columns =
        scaffold_.smaller(builder_.CreateNSWSub(number(problem_.columns), column), number(width));
    RowRequest rows_of_a = request(row, rows, group);
    problem_.fill_rows(rows_of_a);
    llvm::Value* b = scaffold_.float_at(scaffold_.buffers[1], scaffold_.times(panel, depth * width));
    llvm::Value* sums = scaffold_.scratch(0);
    tiles_.call(builder_, rows,
                {rows_of_a.table, number(0), number(problem_.segments), number(problem_.count), b, sums,
                 fetched_by(place, b)});
    llvm::Value* first_column = builder_.CreateNSWAdd(scaffold_.times(group, problem_.columns), column);
    epilogue_.call(builder_, sums, row, rows, first_column, columns);
  }

  const PanelProblem& problem_;
  Scaffold scaffold_;
  Builder& builder_;
  TileFunctions tiles_;
  EpilogueFunction epilogue_;
};

}  // namespace

Layout panel_layout(std::span<const int> order, const TileShape& tile) {
  return Layout::blocked(order, 0, tile.columns());
}

TemplateKernel plan_panels(PanelProblem problem, const std::string& key, const Target& target) {
  const TileShape& tile = problem.tile;
  int64_t depth = problem.segments * problem.count;
  TemplateKernel plan;
  plan.launch.symbols = symbol_arguments(problem.epilogue, problem.operands, {&problem.rows, 1});
  plan.launch.work_items = core::ceil_divide(problem.rows, tile.rows) * Dim(panels_of(problem));
  // Per nanosecond a core does about 50 multiply-adds, or reads about 4 f32 values from memory.
  plan.launch.item_cost = std::max(depth * tile.columns() * tile.rows / 50, depth * tile.columns() / 4);
  plan.launch.scratch_bytes = sums_bytes(tile) + table_bytes(problem) + problem.extra_bytes;
  plan.key =
      fmt::format("{} tile {}x{}x{} rows {} segments {} count {} groups {} columns {} dim {} {}",
                  problem.name, tile.rows, tile.vectors, tile.lanes, problem.rows.to_string(),
                  problem.segments, problem.count, problem.groups, problem.columns, problem.column_dim, key) +
      describe_problem(problem.operands, problem.epilogue, plan.launch.symbols, problem.symbols);
  plan.compile = [problem = std::move(problem), features = features_of(target),
                  symbols = plan.launch.symbols] { return PanelKernel(problem, features).emit(symbols); };
  return plan;
}

}  // namespace ingot::core::cpu
