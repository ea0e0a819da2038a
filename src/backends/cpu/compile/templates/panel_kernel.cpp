// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/panel_kernel.h"

#include <fmt/format.h>

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/templates/matrix_tile.h"
#include "backends/cpu/compile/templates/scaffold.h"
#include "backends/cpu/compile/templates/scaled_products.h"
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

int64_t scaled_bytes(const PanelProblem& problem, CpuFeatures features) {
  if (!problem.scales || !may_convert_loads(problem)) return 0;
  return ScaledProducts::scratch_bytes(problem.tile, *problem.scales, problem.count, features);
}

int64_t table_bytes(const PanelProblem& problem) {
  return ceil_divide(problem.segments * problem.tile.rows * int64_t{sizeof(void*)}, 64) * 64;
}

// Packed rows of A for matrix registers. With rows that lie as the registers read them, only those of a last
// tile are packed. Otherwise all rows of a block are, once for all of its panels; blocks are small, so that
// threads that share a block's panels do not pack much of it twice. An estimate, not tuned.
constexpr int64_t kPackedBytes = 256 << 10;
bool packs_last_rows(const PanelProblem& problem) {
  return problem.row_numbers && steps_of(problem) % kMatrixWords == 0;
}
bool packs_all_rows(const PanelProblem& problem) {
  return problem.tile.by_matrices && !packs_last_rows(problem);
}
int64_t packed_tile_bytes(const PanelProblem& problem) {
  return problem.tile.rows * packed_row_bytes(steps_of(problem));
}
int64_t packed_block_bytes(const PanelProblem& problem) {
  return std::min(kPackedBytes, problem.tactic.row_block_bytes);
}
int64_t packed_tiles(const PanelProblem& problem) {
  if (!problem.tile.by_matrices) return 0;
  if (packs_last_rows(problem)) return 1;
  return std::max<int64_t>(packed_block_bytes(problem) / packed_tile_bytes(problem), 1);
}
// And which tile each of them is.
int64_t packed_bytes(const PanelProblem& problem) {
  return packed_tiles(problem) * packed_tile_bytes(problem) +
         round_up(packed_tiles(problem) * int64_t{sizeof(int64_t)}, 64);
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
      return TileFunctions(scaffold_.code, tile, operand_of(tile), bounds, /*prefetch=*/true);
    };
    if (may_convert_panels(problem)) of_converted_.emplace(make(converted_tile(problem.tile)));
    if (of_converted_ && !may_convert_loads(problem)) return;
    if (problem.scales)
      of_scaled_.emplace(scaffold_, problem.tile, *problem.scales, problem.count, bounds.rows);
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
    if (of_scaled_) of_scaled_->begin(scaffold_.buffers[0], rows, rows_scratch());
    for_each_packed_tile([&](llvm::Value* place) { builder_.CreateStore(number(-1), place); });
    begin_matrices(builder_, problem_.tile);
    scaffold_.for_each_item([&](llvm::Value* item) { emit_item(place_of(item, tiles, block), rows); });
    end_matrices(builder_, problem_.tile);
    return scaffold_.finish();
  }

 private:
  llvm::Value* number(int64_t value) { return scaffold_.number(value); }
  int64_t count() const { return problem_.count / problem_.tile.group(); }  // steps of a segment

  // Scratch: sums, table of row pointers, converted panel, packed rows, extra, rows in fixed point.
  RowRequest request(llvm::Value* row, llvm::Value* rows, llvm::Value* group) {
    const int64_t table = problem_.tile.sums_bytes();
    return {builder_,
            scaffold_.dims,
            scaffold_.buffers,
            row,
            rows,
            group,
            scaffold_.scratch(table),
            stored_type(builder_, problem_.tile.a),
            scaffold_.scratch(extra_start())};
  }
  int64_t extra_start() const { return after_table() + converted_bytes(problem_) + packed_bytes(problem_); }
  llvm::Value* rows_scratch() {
    return scaffold_.scratch(round_up(extra_start() + problem_.extra_bytes, 64));
  }
  int64_t after_table() const { return problem_.tile.sums_bytes() + table_bytes(problem_); }
  llvm::Value* converted() { return scaffold_.scratch(after_table()); }
  llvm::Value* packed(llvm::Value* slot) {
    return scaffold_.byte_at(scaffold_.scratch(after_table() + converted_bytes(problem_)),
                             scaffold_.times(slot, packed_tile_bytes(problem_)));
  }
  llvm::Value* packed_tile(llvm::Value* slot) {  // where it says which tile the slot holds; -1: none
    return builder_.CreateGEP(builder_.getInt64Ty(), packed(number(packed_tiles(problem_))), slot);
  }
  void for_each_packed_tile(const std::function<void(llvm::Value* place)>& body) {
    if (packed_tiles(problem_) == 0) return;
    emit_loop(builder_, number(0), number(packed_tiles(problem_)), 1,
              [&](llvm::Value* slot) { body(packed_tile(slot)); });
  }

  llvm::Value* tiles_a_block(llvm::Value* tiles) {
    const bool packs = packs_all_rows(problem_);
    const PanelTactic& tactic = problem_.tactic;
    const int64_t tile_bytes =
        packs ? packed_tile_bytes(problem_)
              : problem_.tile.rows * row_bytes(problem_.tile.a, problem_.segments * problem_.count);
    const int64_t whole_bytes = packs ? packed_block_bytes(problem_) : tactic.whole_rows_bytes;
    llvm::Value* fits = builder_.CreateICmpSLE(scaffold_.times(tiles, tile_bytes), number(whole_bytes));
    const int64_t most = std::max<int64_t>((packs ? whole_bytes : tactic.row_block_bytes) / tile_bytes, 1);
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

  void pack(const RowRequest& a, llvm::Value* to) {
    problem_.fill_rows(a);
    emit_loop(builder_, number(0), a.rows, 1, [&](llvm::Value* row) {
      llvm::Value* start = scaffold_.byte_at(to, scaffold_.times(row, packed_row_bytes(steps_of(problem_))));
      emit_loop(builder_, number(0), number(problem_.segments), 1, [&](llvm::Value* segment) {
        llvm::Value* entry = builder_.CreateNSWAdd(scaffold_.times(segment, problem_.tile.rows), row);
        llvm::Value* from =
            builder_.CreateLoad(builder_.getPtrTy(), builder_.CreateGEP(builder_.getPtrTy(), a.table, entry));
        const int64_t bytes = count() * int64_t{sizeof(int32_t)};
        pack_words(scaffold_, from, scaffold_.byte_at(start, scaffold_.times(segment, bytes)),
                   number(count()));
      });
      if (steps_of(problem_) % kMatrixWords == 0) return;
      llvm::Value* zeros = llvm::Constant::getNullValue(stored_type(builder_, DType::kI32, kMatrixWords));
      const int64_t end = steps_of(problem_) * int64_t{sizeof(int32_t)};
      store_lanes(builder_, DType::kI32, zeros, scaffold_.byte_at(start, number(end)));
    });
  }

  MatrixRows matrix_rows(const Place& place, const RowRequest& a) {
    const bool in_memory = packs_last_rows(problem_);
    llvm::Value* slot = in_memory ? number(0) : place.tile_in_block;
    const MatrixRows packed_rows{packed(slot), number(packed_row_bytes(steps_of(problem_)))};
    const auto pack_once = [&] {
      llvm::Value* last = builder_.CreateLoad(builder_.getInt64Ty(), packed_tile(slot));
      emit_if(builder_, builder_.CreateICmpNE(place.tile, last), [&] {
        builder_.CreateStore(place.tile, packed_tile(slot));
        pack(a, packed_rows.start);
      });
    };
    if (!in_memory) {
      pack_once();
      return packed_rows;
    }
    const int64_t bytes = row_bytes(problem_.tile.a, *problem_.row_numbers);
    const MatrixRows stored{scaffold_.byte_at(scaffold_.buffers[0], scaffold_.times(a.row, bytes)),
                            number(bytes)};
    return choose_rows(scaffold_, stored, packed_rows, a.rows, number(steps_of(problem_)), pack_once);
  }

  // Row pointers, or rows for matrix registers.
  MatrixRows rows_of_a(const Place& place, const RowRequest& a) {
    if (problem_.tile.by_matrices) return matrix_rows(place, a);
    problem_.fill_rows(a);
    return {a.table, number(0)};
  }

  void multiply(const Place& place, const RowRequest& a, llvm::Value* all_rows) {
    const MatrixRows rows_of_tile = rows_of_a(place, a);
    llvm::Value* stored = stored_panel(place.panel);
    const PrefetchedShare share =
        prefetched_by(scaffold_, problem_.tile, steps_of(problem_),
                      {place.tile_in_block, place.tiles_in_block, stored, next_panel(place.panel)});
    auto call = [&](const TileFunctions& tiles, llvm::Value* b) {
      tiles.call(builder_, a.rows,
                 {rows_of_tile.start, rows_of_tile.stride, number(problem_.segments), number(count()), b,
                  scaffold_.scratch(0), share.from, share.stride});
    };
    auto with_converted = [&] {
      convert(place.panel, stored);
      call(*of_converted_, converted());
    };
    auto with_stored = [&] {
      if (of_stored_) return call(*of_stored_, stored);
      of_scaled_->call(a.rows, a.table, scaled_panel(place.panel), scaffold_.scratch(0));
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
    multiply(place, request(row, rows, group), all_rows);
    llvm::Value* first_column = builder_.CreateNSWAdd(scaffold_.times(group, problem_.columns), column);
    epilogue_.call(builder_, scaffold_.scratch(0), row, rows, first_column, columns);
  }

  const PanelProblem& problem_;
  Scaffold scaffold_;
  Builder& builder_;
  std::optional<TileFunctions> of_stored_, of_converted_;  // by the panels that they read
  std::optional<ScaledProducts> of_scaled_;                // in place of of_stored_
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
  // Per nanosecond a core reads about 4 f32 values from memory.
  plan.launch.item_cost = std::max(depth * tile.columns() * tile.rows / tile.products_a_nanosecond(),
                                   depth * tile.columns() / (4 * tile.group()));
  plan.launch.scratch_bytes = tile.sums_bytes() + table_bytes(problem) + converted_bytes(problem) +
                              packed_bytes(problem) + problem.extra_bytes +
                              scaled_bytes(problem, features_of(target));
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
