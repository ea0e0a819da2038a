// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/transposition.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/llvm/lanes.h"
#include "backends/cpu/compile/templates/scaffold.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/cpu/compile/templates/unblocked.h"
#include "ops/ops.h"

namespace ingot::core::cpu {

namespace {

constexpr int64_t kLine = 16;           // elements per work item: a cache line of 32-bit ones
constexpr int64_t kSmallestExtent = 8;  // below it, squares are mostly empty
constexpr const char* kOuterIndex = "transposition.outer";

using Dims = std::vector<int>;  // of the logical tensor

Dims storage_order(const TensorType& type) {
  Dims order(type.rank());
  std::iota(order.begin(), order.end(), 0);
  if (!type.layout.is_row_major()) std::ranges::transform(type.layout.axes, order.begin(), &LayoutAxis::dim);
  return order;
}

// The longest suffix of `order` whose dims are consecutive in `other` too.
Dims innermost_run(const Dims& order, const Dims& other) {
  Dims run{order.back()};
  for (size_t i = order.size() - 1; i-- > 0; run.insert(run.begin(), order[i])) {
    const auto next = std::ranges::find(other, order[i]) + 1;
    if (next == other.end() || *next != run.front()) break;
  }
  return run;
}

struct TranspositionProblem {
  SymbolTable symbols;
  TensorType from, to;
  Dims from_run, to_run;
  Dim outer = 1, from_extent = 1, to_extent = 1;
  int lanes = 8;
  DType element = DType::kI32;  // of the same width as the tensor's

  // Storage offset of the element at these positions in the two runs, at the outer index kOuterIndex.
  Dim offset(const TensorType& type, const Dim& from_place, const Dim& to_place) const {
    std::vector<Dim> index(type.rank(), Dim(0));
    Dim rest = Dim::symbol(kOuterIndex);
    for (size_t i = index.size(); i-- > 0;) {
      const int dim = static_cast<int>(i);
      const bool in_run = std::ranges::count(from_run, dim) + std::ranges::count(to_run, dim) > 0;
      if (in_run) continue;
      const Dim extent =
          type.shape[i] == Dim(0) ? Dim(1) : type.shape[i];  // for an empty tensor, no index is computed
      index[i] = modulo(rest, extent);
      rest = floor_divide(rest, extent);
    }
    index[static_cast<size_t>(from_run.back())] = from_place;
    index[static_cast<size_t>(to_run.back())] = to_place;
    return storage_offset(type.layout, type.shape, index);
  }
};

Dim extent_of(const Dims& run, const Shape& shape) {
  Dim extent = 1;
  for (const int dim : run) extent = extent * shape[static_cast<size_t>(dim)];
  return extent;
}

std::optional<RelayoutSides> sides_of(const Node& node) {
  return unblocked({node.operand_type(0), node.results[0]->type});
}

TranspositionProblem make_problem(const Node& node, const SymbolTable& symbols, CpuFeatures features) {
  const RelayoutSides sides = sides_of(node).value();
  TranspositionProblem problem{.symbols = symbols, .from = sides.from, .to = sides.to};
  const Dims from = storage_order(problem.from), to = storage_order(problem.to);
  problem.from_run = innermost_run(from, to);
  problem.to_run = innermost_run(to, from);
  problem.from_extent = extent_of(problem.from_run, problem.from.shape);
  problem.to_extent = extent_of(problem.to_run, problem.from.shape);
  for (const int dim : from) {
    const bool in_run =
        std::ranges::count(problem.from_run, dim) + std::ranges::count(problem.to_run, dim) > 0;
    if (!in_run) problem.outer = problem.outer * problem.from.shape[static_cast<size_t>(dim)];
  }
  const int width = bit_width(problem.from.dtype);
  problem.lanes = features.has(CpuFeature::kX86V4) ? 16 : 8;
  if (width == 64) problem.lanes /= 2;
  problem.element = width == 16 ? DType::kI16 : width == 32 ? DType::kI32 : DType::kI64;
  return problem;
}

class TranspositionKernel {
 public:
  TranspositionKernel(const TranspositionProblem& problem, CpuFeatures features)
      : problem_(problem),
        scaffold_(features, "transposition", problem.symbols),
        builder_(scaffold_.builder) {}

  Image emit(const std::vector<std::string>& symbols) {
    scaffold_.load_arguments(2, symbols);
    from_extent_ = scaffold_.dims.emit(problem_.from_extent);
    to_extent_ = scaffold_.dims.emit(problem_.to_extent);
    llvm::Value* lines = scaffold_.ceil_divide(from_extent_, kLine);
    scaffold_.for_each_item([&](llvm::Value* item) {
      scaffold_.dims.values[kOuterIndex] = builder_.CreateUDiv(item, lines);
      emit_line(scaffold_.times(builder_.CreateURem(item, lines), kLine));
    });
    return scaffold_.finish();
  }

 private:
  llvm::Value* number(int64_t value) { return scaffold_.number(value); }

  llvm::Value* element_at(llvm::Value* pointer, llvm::Value* index) {
    return builder_.CreateGEP(arithmetic_type(builder_, problem_.element), pointer, index);
  }

  // Start and strides of one side, for this item.
  struct Side {
    llvm::Value *start, *from_stride, *to_stride;
  };
  Side side(const TensorType& type, llvm::Value* buffer) {
    const Dim start = problem_.offset(type, 0, 0);
    return {element_at(buffer, scaffold_.dims.emit(start)),
            scaffold_.dims.emit(problem_.offset(type, 1, 0) - start),
            scaffold_.dims.emit(problem_.offset(type, 0, 1) - start)};
  }
  llvm::Value* at(const Side& side, llvm::Value* from_place, llvm::Value* to_place) {
    llvm::Value* along = builder_.CreateNSWMul(from_place, side.from_stride);
    return element_at(side.start,
                      builder_.CreateNSWAdd(along, builder_.CreateNSWMul(to_place, side.to_stride)));
  }

  void emit_line(llvm::Value* first) {
    const Side from = side(problem_.from, scaffold_.buffers[0]), to = side(problem_.to, scaffold_.buffers[1]);
    llvm::Value* end = scaffold_.smaller(scaffold_.plus(first, kLine), from_extent_);
    const auto emit_squares = [&](llvm::Value* place, llvm::Value* mask) {
      emit_loop(builder_, first, end, problem_.lanes,
                [&](llvm::Value* square) { emit_square(from, to, square, place, mask); });
    };
    llvm::Value* rest = builder_.CreateURem(to_extent_, number(problem_.lanes));
    llvm::Value* whole = builder_.CreateNSWSub(to_extent_, rest);
    emit_loop(builder_, number(0), whole, problem_.lanes,
              [&](llvm::Value* place) { emit_squares(place, nullptr); });
    emit_if(builder_, builder_.CreateICmpNE(rest, number(0)),  // masked stores are slow on AVX2
            [&] { emit_squares(whole, first_lanes(builder_, rest, problem_.lanes)); });
  }

  // Past the ends, the last element along the result's run is loaded again, and the last along the operand's
  // run is stored early and then overwritten: stores run backwards.
  void emit_square(const Side& from, const Side& to, llvm::Value* from_place, llvm::Value* to_place,
                   llvm::Value* to_mask) {
    const int lanes = problem_.lanes;
    llvm::Value *last_to = scaffold_.plus(to_extent_, -1), *last_from = scaffold_.plus(from_extent_, -1);
    llvm::Value* from_mask = first_lanes(builder_, builder_.CreateNSWSub(from_extent_, from_place), lanes);
    std::vector<llvm::Value*> square;
    for (int i = 0; i < lanes; ++i) {
      llvm::Value* place = scaffold_.smaller(scaffold_.plus(to_place, i), last_to);
      square.push_back(load_lanes(builder_, problem_.element, at(from, from_place, place), lanes, from_mask));
    }
    square = transpose_lanes(builder_, std::move(square));
    for (int i = lanes; i-- > 0;) {
      llvm::Value* place = scaffold_.smaller(scaffold_.plus(from_place, i), last_from);
      store_lanes(builder_, problem_.element, square[static_cast<size_t>(i)], at(to, place, to_place),
                  to_mask);
    }
  }

  const TranspositionProblem& problem_;
  Scaffold scaffold_;
  Builder& builder_;
  llvm::Value* from_extent_ = nullptr;
  llvm::Value* to_extent_ = nullptr;
};

bool is_long(const Dim& extent) {
  const auto size = extent.constant();
  return !size || *size >= kSmallestExtent;
}

}  // namespace

Fit supports_transposition(const Node& node) {
  if (node.op != &ops::relayout) return {false, "it is not a relayout"};
  const int width = bit_width(node.operand_type(0).dtype);
  if (width < 16 || width > 64) return {false, "its elements do not have 16, 32 or 64 bits"};
  const auto sides = sides_of(node);
  if (!sides || sides->from.rank() < 2) return {false, "a layout has blocks that are not whole"};
  const auto& [from, to] = *sides;
  const Dims order = storage_order(from), wanted = storage_order(to);
  if (order.back() == wanted.back()) return {false, "the innermost dim is unchanged"};
  const Dims from_run = innermost_run(order, wanted), to_run = innermost_run(wanted, order);
  if (!is_long(extent_of(from_run, from.shape)) || !is_long(extent_of(to_run, from.shape)))
    return {false, "a run is shorter than a vector"};
  return {};
}

TemplateKernel plan_transposition(const Node& node, const SymbolTable& symbols, const Target& target) {
  TranspositionProblem problem = make_problem(node, symbols, features_of(target));
  const std::vector<TensorType> operands{problem.from};
  TemplateKernel plan;
  plan.launch.symbols = symbol_arguments({}, operands, {});
  plan.launch.work_items = problem.outer * ceil_divide(problem.from_extent, kLine);
  plan.launch.item_cost = problem.to_extent.constant().value_or(64) * kLine / 4;
  plan.key = fmt::format("transposition to {}", to_string(problem.to)) +
             describe_problem(operands, {}, plan.launch.symbols, symbols);
  plan.compile = [problem = std::move(problem), features = features_of(target),
                  arguments = plan.launch.symbols] {
    return TranspositionKernel(problem, features).emit(arguments);
  };
  return plan;
}

}  // namespace ingot::core::cpu
