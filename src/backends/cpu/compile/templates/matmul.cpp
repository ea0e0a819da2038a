// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/matmul.h"

#include <fmt/format.h>

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/llvm/lanes.h"
#include "backends/cpu/compile/templates/epilogue.h"
#include "backends/cpu/compile/templates/matrix_operand.h"
#include "backends/cpu/compile/templates/matrix_tile.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/cpu/compile/templates/tile.h"

namespace ingot::core::cpu {

namespace {

// MC: rows that share a packed panel. Packing then costs 1/128 of the multiply-adds, and 512 rows still make
// four work items per panel. An estimate, not tuned.
constexpr int64_t kItemRows = 128;

struct MatmulProblem {
  SymbolTable symbols;
  std::vector<TensorType> operands;
  TensorType result;
  loops::Kernel epilogue;
  Dim batch, rows, columns, depth;
  MatrixOperand a, b;
  TileShape tile;

  Dim steps() const { return core::ceil_divide(depth, tile.group()); }
  bool whole_columns() const { return columns.is_constant() && *columns.constant() % tile.columns() == 0; }
  bool b_is_transposed() const { return !is_innermost(operands[1], operands[1].rank() - 1); }
  int64_t table_bytes() const { return round_up(tile.rows * int64_t{sizeof(void*)}, 64); }
  // Scratch: sums, row pointers, the panel, packed rows.
  Dim panel_bytes() const { return ceil_divide(steps(), tile.lanes) * Dim(tile.lanes * tile.step_bytes()); }
  Dim packed_bytes() const { return tile.by_matrices ? packed_row_bytes(steps()) * Dim(tile.rows) : Dim(0); }
};

class MatmulKernel {
 public:
  MatmulKernel(const MatmulProblem& problem, CpuFeatures features)
      : problem_(problem),
        lanes_(problem.tile.lanes),
        scaffold_(features, "matmul", problem.symbols),
        builder_(scaffold_.builder),
        tiles_(scaffold_.code, problem.tile, operand_of(problem.tile), {1, problem.steps().constant()},
               false),
        epilogue_(scaffold_.code, tile_epilogue(problem.epilogue, {problem.result.rank() - 1,
                                                                   {},
                                                                   problem.tile.rows,
                                                                   problem.tile.columns(),
                                                                   problem.whole_columns(),
                                                                   problem.tile.sum()})) {}

  Image emit(const std::vector<std::string>& arguments) {
    scaffold_.load_arguments(2 + problem_.epilogue.buffers.size() - 1, arguments);
    epilogue_.prepare(builder_, scaffold_.dims, std::span(scaffold_.buffers).subspan(2));
    rows_ = scaffold_.dims.emit(problem_.rows);
    columns_ = scaffold_.dims.emit(problem_.columns);
    steps_ = scaffold_.dims.emit(problem_.steps());
    llvm::Value* panels = scaffold_.ceil_divide(columns_, problem_.tile.columns());
    llvm::Value* parts = scaffold_.ceil_divide(rows_, kItemRows);
    begin_matrices(builder_, problem_.tile);
    scaffold_.for_each_item([&](llvm::Value* item) {
      llvm::Value* part = builder_.CreateURem(item, parts);
      llvm::Value* rest = builder_.CreateUDiv(item, parts);
      batch_ = builder_.CreateUDiv(rest, panels);
      scaffold_.dims.values[kBatchSymbol] = batch_;
      emit_item(scaffold_.times(part, kItemRows),
                scaffold_.times(builder_.CreateURem(rest, panels), problem_.tile.columns()));
    });
    end_matrices(builder_, problem_.tile);
    return scaffold_.finish();
  }

 private:
  llvm::Value* number(int64_t value) { return scaffold_.number(value); }
  llvm::Value* table() { return scaffold_.scratch(problem_.tile.sums_bytes()); }
  llvm::Value* panel() { return scaffold_.scratch(problem_.tile.sums_bytes() + problem_.table_bytes()); }

  // Row pointers, or rows for matrix registers. Missing rows repeat the last one.
  MatrixRows rows_of_a(const PlacedMatrix& a, llvm::Value* row, llvm::Value* rows) {
    if (problem_.tile.by_matrices) return matrix_rows(a, row, rows);
    llvm::Value* last = scaffold_.plus(rows_, -1);
    for (int i = 0; i < problem_.tile.rows; ++i) {
      llvm::Value* existing = scaffold_.smaller(scaffold_.plus(row, i), last);
      builder_.CreateStore(
          a.at(builder_, existing, number(0)),
          builder_.CreateConstGEP1_64(builder_.getPtrTy(), table(), static_cast<uint64_t>(i)));
    }
    return {table(), number(0)};
  }

  MatrixRows matrix_rows(const PlacedMatrix& a, llvm::Value* row, llvm::Value* rows) {
    const MatrixRows packed{scaffold_.byte_at(panel(), scaffold_.dims.emit(problem_.panel_bytes())),
                            scaffold_.dims.emit(packed_row_bytes(problem_.steps()))};
    const MatrixRows stored{a.at(builder_, row, number(0)),
                            scaffold_.times(a.row_stride, bit_width(problem_.tile.a) / 8)};
    return choose_rows(scaffold_, stored, packed, rows, steps_);
  }

  void emit_item(llvm::Value* first, llvm::Value* column) {
    auto place = [&](const MatrixOperand& operand, size_t i) {
      return place_at_batch(scaffold_, operand, problem_.operands[i], scaffold_.buffers[i]);
    };
    PlacedMatrix a = place(problem_.a, 0), b = place(problem_.b, 1);
    llvm::Value* columns =
        scaffold_.smaller(builder_.CreateNSWSub(columns_, column), number(problem_.tile.columns()));
    problem_.b_is_transposed() ? pack_columns(b, column) : pack_rows(b, column, columns);
    llvm::Value* end = scaffold_.smaller(rows_, scaffold_.plus(first, kItemRows));
    emit_loop(builder_, first, end, problem_.tile.rows, [&](llvm::Value* row) {
      llvm::Value* rows = scaffold_.smaller(builder_.CreateNSWSub(end, row), number(problem_.tile.rows));
      const MatrixRows tile = rows_of_a(a, row, rows);
      tiles_.call(builder_, rows,
                  {tile.start, tile.stride, number(1), steps_, panel(), scaffold_.scratch(0)});
      llvm::Value* result_row = builder_.CreateNSWAdd(builder_.CreateNSWMul(batch_, rows_), row);
      epilogue_.call(builder_, scaffold_.scratch(0), result_row, rows, column, columns);
    });
  }

  llvm::Value* panel_at(llvm::Value* step, int v) {
    llvm::Value* words = scaffold_.plus(scaffold_.times(step, problem_.tile.columns()), v * lanes_);
    return builder_.CreateGEP(stored_type(builder_, problem_.tile.word()), panel(), words);
  }

  // B is row-major like the panel, in which the rows of a step alternate. Missing columns read as zero.
  void pack_rows(const PlacedMatrix& b, llvm::Value* column, llvm::Value* columns) {
    const int group = problem_.tile.group();
    const DType raw = group == 1 ? problem_.tile.a : group == 2 ? DType::kI16 : DType::kI8;
    emit_loop(builder_, number(0), steps_, 1, [&](llvm::Value* step) {
      for (int v = 0; v < problem_.tile.vectors; ++v) {
        llvm::Value* mask = nullptr;
        if (!problem_.whole_columns()) {
          mask = first_lanes(builder_, scaffold_.plus(columns, -v * lanes_), lanes_);
        }
        auto load_row = [&](int i) {
          llvm::Value* row = scaffold_.plus(scaffold_.times(step, group), i);
          return load_lanes(builder_, raw, b.at(builder_, row, scaffold_.plus(column, v * lanes_)), lanes_,
                            mask);
        };
        store_lanes(builder_, raw, alternate_rows(load_row, 0, group), panel_at(step, v));
      }
    });
  }

  // Row `first` of `count` rows, and those at its multiples, element by element in turns.
  llvm::Value* alternate_rows(const std::function<llvm::Value*(int row)>& load_row, int first, int count) {
    if (count == 1) return load_row(first);
    const int stride = problem_.tile.group() / count;
    return alternate_lanes(builder_, alternate_rows(load_row, first, count / 2),
                           alternate_rows(load_row, first + stride, count / 2));
  }

  // B is column-major: transposes squares of words. Missing columns repeat the last one; the panel has room
  // for whole squares.
  void pack_columns(const PlacedMatrix& b, llvm::Value* column) {
    llvm::Value* last = scaffold_.plus(columns_, -1);
    const DType word = problem_.tile.word();
    emit_loop(builder_, number(0), steps_, lanes_, [&](llvm::Value* step) {
      llvm::Value* mask = first_lanes(builder_, builder_.CreateNSWSub(steps_, step), lanes_);
      llvm::Value* row = scaffold_.times(step, problem_.tile.group());
      for (int v = 0; v < problem_.tile.vectors; ++v) {
        std::vector<llvm::Value*> square;
        for (int i = 0; i < lanes_; ++i) {
          llvm::Value* existing = scaffold_.smaller(scaffold_.plus(column, v * lanes_ + i), last);
          square.push_back(load_lanes(builder_, word, b.at(builder_, row, existing), lanes_, mask));
        }
        square = transpose_lanes(builder_, std::move(square));
        for (int i = 0; i < lanes_; ++i) {
          store_lanes(builder_, word, square[static_cast<size_t>(i)], panel_at(scaffold_.plus(step, i), v));
        }
      }
    });
  }

  const MatmulProblem& problem_;
  int lanes_;
  Scaffold scaffold_;
  Builder& builder_;
  TileFunctions tiles_;
  EpilogueFunction epilogue_;
  llvm::Value* rows_ = nullptr;
  llvm::Value* columns_ = nullptr;
  llvm::Value* steps_ = nullptr;  // of the microkernel
  llvm::Value* batch_ = nullptr;
};

}  // namespace

Fit supports_matmul(std::span<const TensorType> operands, CpuFeatures features) {
  const TensorType& a = operands[0];
  if (!has_tiles(a.dtype, operands[1].dtype, features))
    return {false, fmt::format("the matmul template does not multiply {}", name(a.dtype))};
  const int group = choose_tile(0, features, a.dtype, operands[1].dtype).group();
  if (modulo(a.shape.back(), group) != Dim(0))
    return {false, fmt::format("groups of {} numbers do not fill the depth", group)};
  return {};
}

LayoutRequest matmul_layouts(std::span<const TensorType> operands) {
  const TensorType &a = operands[0], &b = operands[1];
  bool a_fits = is_innermost(a, a.rank() - 1);
  bool b_fits = is_innermost(b, b.rank() - 1) || is_innermost(b, b.rank() - 2);
  auto keep = [](bool fits) { return fits ? std::nullopt : std::optional(Layout{}); };
  return {{keep(a_fits), keep(b_fits)}, {std::nullopt}};
}

TemplateKernel plan_matmul(std::span<const TensorType> operands, const TensorType& result,
                           const loops::Kernel& epilogue, const SymbolTable& symbols, const Target& target) {
  const TensorType &a = operands[0], &b = operands[1];
  Shape batch(result.shape.begin(), result.shape.end() - 2);
  TileShape tile = choose_tile(b.shape.back().constant().value_or(0), features_of(target), a.dtype, b.dtype);
  MatmulProblem problem{symbols,
                        {a, b},
                        result,
                        a.dtype == DType::kU8 ? epilogue_of_integers(epilogue, target) : epilogue,
                        product(batch),
                        a.shape[a.rank() - 2],
                        b.shape.back(),
                        a.shape.back(),
                        place_matrix(a, batch),
                        place_matrix(b, batch),
                        tile};
  TemplateKernel plan;
  plan.launch.symbols = symbol_arguments(problem.epilogue, operands, result.shape);
  plan.launch.work_items =
      problem.batch * ceil_divide(problem.columns, tile.columns()) * ceil_divide(problem.rows, kItemRows);
  int64_t rows = std::min(problem.rows.constant().value_or(kItemRows), kItemRows);
  plan.launch.item_cost = problem.depth.constant().value_or(64) * tile.columns() * (rows + tile.rows) /
                          tile.products_a_nanosecond();
  plan.launch.scratch_bytes =
      problem.panel_bytes() + problem.packed_bytes() + Dim(tile.sums_bytes() + problem.table_bytes());
  plan.key = "matmul " + to_string(tile) +
             describe_problem(operands, problem.epilogue, plan.launch.symbols, symbols);
  plan.compile = [problem = std::move(problem), features = features_of(target),
                  arguments = plan.launch.symbols] {
    return MatmulKernel(problem, features).emit(arguments);
  };
  return plan;
}

}  // namespace ingot::core::cpu
