// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/panel_kernel.h"

#include <fmt/format.h>

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/templates/scaffold.h"
#include "backends/cpu/compile/templates/target.h"

namespace ingot::core::cpu {

namespace {

int64_t panels_of(const PanelProblem& problem) {
  return problem.groups * ceil_divide(problem.columns, problem.tile.columns());
}

int64_t steps_of(const PanelProblem& problem) {
  return problem.segments * problem.count / problem.tile.group();
}

bool may_convert_panels(const PanelProblem& problem) {
  return is_narrow(problem.tile) && problem.rows.constant().value_or(INT64_MAX) > problem.tile.rows;
}
bool may_convert_loads(const PanelProblem& problem) {
  return is_narrow(problem.tile) && problem.rows.constant().value_or(0) <= problem.tile.rows;
}
int64_t converted_bytes(const PanelProblem& problem) {
  return may_convert_panels(problem) ? steps_of(problem) * converted_tile(problem.tile).step_bytes() : 0;
}

int64_t table_bytes(const PanelProblem& problem) {
  return ceil_divide(problem.segments * problem.tile.rows * int64_t{sizeof(void*)}, 64) * 64;
}

bool whole_columns(const PanelProblem& problem) { return problem.columns % problem.tile.columns() == 0; }

size_t operands_without_bias(const PanelProblem& problem) {
  return problem.scales ? problem.operands.size() : 2;
}

EpilogueShape epilogue_shape(const PanelProblem& problem) {
  EpilogueShape shape{problem.column_dim,     {},
                      problem.tile.rows,      problem.tile.columns(),
                      whole_columns(problem), problem.tile.sum()};
  if (problem.operands.size() > operands_without_bias(problem)) shape.bias = problem.operands[2];
  return shape;
}

// Emits the kernel of one problem.
class PanelKernel {
 public:
  PanelKernel(const PanelProblem& problem, CpuFeatures features)
      : problem_(problem),
        scaffold_(features, problem.name, problem.symbols),
        builder_(scaffold_.builder),
        epilogue_(scaffold_.code, tile_epilogue(problem.epilogue, epilogue_shape(problem))) {
    const TileBounds bounds{problem.segments, count(), problem.rows.constant()};
    auto make = [&](const TileShape& tile) {
      return TileFunctions(scaffold_.code, tile, TileOperand::kRows, bounds, /*prefetch=*/true);
    };
    if (may_convert_panels(problem)) of_converted_.emplace(make(converted_tile(problem.tile)));
    if (of_converted_ && !may_convert_loads(problem)) return;
    if (problem.scales)
      of_scaled_.emplace(scaffold_.code, problem.tile, *problem.scales, problem.count, bounds.rows);
    else
      of_stored_.emplace(make(problem.tile));
  }

  Image emit(const std::vector<std::string>& symbols) {
    epilogue_.load_arguments(scaffold_, problem_.operands.size(), symbols, operands_without_bias(problem_));
    if (problem_.begin) problem_.begin(request(nullptr, nullptr, nullptr));
    llvm::Value* rows = scaffold_.dims.emit(problem_.rows);
    llvm::Value* tiles = scaffold_.ceil_divide(rows, problem_.tile.rows);
    llvm::Value* block = tiles_a_block(tiles);
    converted_panel_ = stack_array(builder_, builder_.getInt64Ty(), 1, sizeof(int64_t));
    builder_.CreateStore(number(-1), converted_panel_);
    scaffold_.for_each_item([&](llvm::Value* item) { emit_item(place_of(item, tiles, block), rows); });
    return scaffold_.finish();
  }

 private:
  llvm::Value* number(int64_t value) { return scaffold_.number(value); }
  int64_t count() const { return problem_.count / problem_.tile.group(); }  // steps of a segment

  // Scratch: sums, table of row pointers, converted panel, extra.
  RowRequest request(llvm::Value* row, llvm::Value* rows, llvm::Value* group) {
    const int64_t table = problem_.tile.sums_bytes(), panel = table + table_bytes(problem_);
    return {builder_,
            scaffold_.dims,
            scaffold_.buffers,
            row,
            rows,
            group,
            scaffold_.scratch(table),
            stored_type(builder_, problem_.tile.a),
            scaffold_.scratch(panel + converted_bytes(problem_))};
  }
  llvm::Value* converted() { return scaffold_.scratch(problem_.tile.sums_bytes() + table_bytes(problem_)); }

  llvm::Value* tiles_a_block(llvm::Value* tiles) {
    const int64_t tile_bytes =
        problem_.tile.rows * row_bytes(problem_.tile.a, problem_.segments * problem_.count);
    llvm::Value* fits =
        builder_.CreateICmpSLE(scaffold_.times(tiles, tile_bytes), number(problem_.tactic.whole_rows_bytes));
    const int64_t most = std::max<int64_t>(problem_.tactic.row_block_bytes / tile_bytes, 1);
    llvm::Value* blocks = scaffold_.larger(scaffold_.ceil_divide(tiles, most), number(1));
    return builder_.CreateSelect(fits, tiles, scaffold_.ceil_divide(tiles, blocks));
  }

  // Item order: blocks of rows, within a block panels, within a panel tiles.
  struct Place {
    llvm::Value *panel, *tile, *tile_in_block, *tiles_in_block;
  };
  Place place_of(llvm::Value* item, llvm::Value* tiles, llvm::Value* block) {
    llvm::Value* items_a_block = scaffold_.times(block, panels_of(problem_));
    llvm::Value* first = builder_.CreateNSWMul(builder_.CreateUDiv(item, items_a_block), block);
    llvm::Value* rest = builder_.CreateURem(item, items_a_block);
    llvm::Value* height = scaffold_.smaller(builder_.CreateNSWSub(tiles, first), block);
    llvm::Value* tile = builder_.CreateURem(rest, height);
    return {builder_.CreateUDiv(rest, height), builder_.CreateNSWAdd(first, tile), tile, height};
  }

  llvm::Value* stored_panel(llvm::Value* panel) {
    return scaffold_.byte_at(scaffold_.buffers[1],
                             scaffold_.times(panel, steps_of(problem_) * problem_.tile.step_bytes()));
  }

  // After the last panel of a block of rows comes the first one.
  llvm::Value* next_panel(llvm::Value* panel) {
    llvm::Value* next = scaffold_.plus(panel, 1);
    llvm::Value* is_last = builder_.CreateICmpEQ(next, number(panels_of(problem_)));
    return stored_panel(builder_.CreateSelect(is_last, number(0), next));
  }

  ScaledPanel scaled_panel(llvm::Value* panel) {
    const auto parameters = [&](size_t operand) {
      const int64_t blocks = problem_.count / problem_.scales->block;
      const int64_t bytes = blocks * row_bytes(problem_.operands[operand].dtype, problem_.tile.columns());
      return scaffold_.byte_at(scaffold_.buffers[operand], scaffold_.times(panel, bytes));
    };
    constexpr size_t kScales = 2, kZeroPoints = 3;
    llvm::Value* scales = parameters(kScales);
    return {stored_panel(panel), scales, problem_.scales->zero_point ? parameters(kZeroPoints) : scales};
  }

  // Unless the last item had the same one.
  void convert(llvm::Value* panel, llvm::Value* from) {
    llvm::Value* last = builder_.CreateLoad(builder_.getInt64Ty(), converted_panel_);
    emit_if(builder_, builder_.CreateICmpNE(panel, last), [&] {
      builder_.CreateStore(panel, converted_panel_);
      if (problem_.scales)
        dequantize_panel(scaffold_, problem_.tile, *problem_.scales, problem_.count, scaled_panel(panel),
                         converted());
      else
        convert_panel(scaffold_, problem_.tile, steps_of(problem_), from, converted());
    });
  }

  void multiply(const Place& place, const RowRequest& a, llvm::Value* all_rows) {
    llvm::Value* stored = stored_panel(place.panel);
    const PrefetchedShare share =
        prefetched_by(scaffold_, problem_.tile, steps_of(problem_),
                      {place.tile_in_block, place.tiles_in_block, stored, next_panel(place.panel)});
    auto call = [&](const TileFunctions& tiles, llvm::Value* b) {
      tiles.call(builder_, a.rows,
                 {a.table, number(0), number(problem_.segments), number(count()), b, scaffold_.scratch(0),
                  share.from, share.stride});
    };
    auto with_converted = [&] {
      convert(place.panel, stored);
      call(*of_converted_, converted());
    };
    auto with_stored = [&] {
      if (of_stored_) return call(*of_stored_, stored);
      of_scaled_->call(builder_, a.rows, a.table, scaled_panel(place.panel), scaffold_.scratch(0));
    };
    if (!of_converted_) return with_stored();
    if (!of_stored_ && !of_scaled_) return with_converted();
    emit_if(builder_, builder_.CreateICmpSGT(all_rows, number(problem_.tile.rows)), with_converted,
            with_stored);
  }

  void emit_item(const Place& place, llvm::Value* all_rows) {
    const int64_t width = problem_.tile.columns();
    llvm::Value *panel = place.panel, *row = scaffold_.times(place.tile, problem_.tile.rows);
    llvm::Value* panels_a_group = number(panels_of(problem_) / problem_.groups);
    llvm::Value* group = builder_.CreateUDiv(panel, panels_a_group);
    llvm::Value* column = scaffold_.times(builder_.CreateURem(panel, panels_a_group), width);
    llvm::Value* rows = scaffold_.smaller(builder_.CreateNSWSub(all_rows, row), number(problem_.tile.rows));
    llvm::Value* columns =
        scaffold_.smaller(builder_.CreateNSWSub(number(problem_.columns), column), number(width));
    RowRequest rows_of_a = request(row, rows, group);
    problem_.fill_rows(rows_of_a);
    multiply(place, rows_of_a, all_rows);
    llvm::Value* first_column = builder_.CreateNSWAdd(scaffold_.times(group, problem_.columns), column);
    epilogue_.call(builder_, scaffold_.scratch(0), row, rows, first_column, columns);
  }

  const PanelProblem& problem_;
  Scaffold scaffold_;
  Builder& builder_;
  std::optional<TileFunctions> of_stored_, of_converted_;  // by the panels that they read
  std::optional<ScaledTileFunctions> of_scaled_;           // in place of of_stored_
  EpilogueFunction epilogue_;
  llvm::Value* converted_panel_ = nullptr;  // on the stack: which one is in scratch; -1: none
};

}  // namespace

TemplateKernel plan_panels(PanelProblem problem, const std::string& key, const Target& target) {
  const TileShape& tile = problem.tile;
  int64_t depth = problem.segments * problem.count;
  TemplateKernel plan;
  plan.launch.symbols = symbol_arguments(problem.epilogue, problem.operands, {&problem.rows, 1});
  plan.launch.work_items = core::ceil_divide(problem.rows, tile.rows) * Dim(panels_of(problem));
  // Per nanosecond a core does about 50 multiply-adds, or reads about 4 f32 values from memory.
  plan.launch.item_cost = std::max(depth * tile.columns() * tile.rows / 50, depth * tile.columns() / 4);
  plan.launch.scratch_bytes =
      tile.sums_bytes() + table_bytes(problem) + converted_bytes(problem) + problem.extra_bytes;
  plan.tactic = name(problem.tactic, tile);
  plan.key = fmt::format("{} {} {} rows {} segments {} count {} groups {} columns {} dim {} {}", problem.name,
                         to_string(tile), plan.tactic, problem.rows.to_string(), problem.segments,
                         problem.count, problem.groups, problem.columns, problem.column_dim, key) +
             describe_problem(problem.operands, problem.epilogue, plan.launch.symbols, problem.symbols);
  plan.compile = [problem = std::move(problem), features = features_of(target),
                  symbols = plan.launch.symbols] { return PanelKernel(problem, features).emit(symbols); };
  return plan;
}

}  // namespace ingot::core::cpu
