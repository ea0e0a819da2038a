// SPDX-License-Identifier: Apache-2.0
// Attention for few queries, bound by memory: keys and values are read once per query. Lanes are along the
// heads' columns.
//
//   for each batch, query                                              (one work item)
//     for each `lanes` keys: scores = dot products with the query, skipped if all are masked
//     maximum; scores = exp(scores - maximum); total
//     for each kVectors vectors of value columns
//       for each key: sums += score * value row
//     divide by the total, epilogue
#include <cmath>
#include <utility>

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/llvm/lanes.h"
#include "backends/cpu/compile/templates/attention_problem.h"
#include "backends/cpu/compile/templates/epilogue.h"
#include "backends/cpu/compile/templates/target.h"
#include "loops/math_expressions.h"

namespace ingot::core::cpu {

namespace {

using Values = std::vector<llvm::Value*>;

// Vectors of a value row that are accumulated in registers together: enough independent sums to hide the
// latency of an FMA (4 cycles, two per cycle).
constexpr int64_t kVectors = 8;

class AttentionStream {
 public:
  AttentionStream(const AttentionProblem& problem, CpuFeatures features)
      : problem_(problem),
        lanes_(problem.lanes(features)),
        scaffold_(features, "attention", problem.symbols),
        builder_(scaffold_.builder),
        epilogue_(scaffold_.code, tile_epilogue(problem.epilogue, epilogue_shape())) {}

  Image emit(const std::vector<std::string>& arguments) {
    begin_attention_kernel(scaffold_, epilogue_, problem_, arguments);
    llvm::Value* queries = scaffold_.dims.emit(problem_.queries);
    keys_ = scaffold_.dims.emit(problem_.keys);
    scores_ = scaffold_.scratch(round_up(problem_.value_width, lanes_) * static_cast<int64_t>(sizeof(float)));
    scaffold_.for_each_item([&](llvm::Value* item) {
      scaffold_.dims.values[kBatchSymbol] = builder_.CreateUDiv(item, queries);
      placed_ = place_attention(scaffold_, problem_);
      emit_query(builder_.CreateURem(item, queries));
      epilogue_.call(builder_, scaffold_.scratch(0), item, number(1), number(0),
                     number(problem_.value_width));
    });
    return scaffold_.finish();
  }

 private:
  EpilogueShape epilogue_shape() const {
    return {problem_.result.rank() - 1,
            {},
            1,
            round_up(problem_.value_width, lanes_),
            problem_.value_width % lanes_ == 0};
  }

  llvm::Value* number(int64_t value) { return scaffold_.number(value); }
  llvm::Value* same(double value) {
    auto* vector = llvm::FixedVectorType::get(builder_.getFloatTy(), static_cast<unsigned>(lanes_));
    return llvm::ConstantFP::get(vector, value);
  }
  llvm::Value* load(llvm::Value* pointer) { return load_lanes(builder_, DType::kF32, pointer, lanes_); }
  // Of queries, keys and values: as f32.
  llvm::Value* load_operand(llvm::Value* pointer, llvm::Value* mask) {
    return load_lanes(builder_, problem_.operands[0].dtype, pointer, lanes_, mask);
  }
  void store(llvm::Value* value, llvm::Value* pointer) { store_lanes(builder_, DType::kF32, value, pointer); }
  llvm::Value* score_at(llvm::Value* key) { return scaffold_.float_at(scores_, key); }
  // Existing lanes of a row of `width` columns from `column` on; null: all.
  llvm::Value* columns_mask(int64_t width, llvm::Value* column) {
    if (width % lanes_ == 0) return nullptr;
    return first_lanes(builder_, builder_.CreateNSWSub(number(width), column), lanes_);
  }

  void emit_query(llvm::Value* query) {
    llvm::Value* end = keys_;
    emit_loop(builder_, number(0), end, lanes_, [&](llvm::Value* key) {
      llvm::Value* exists = first_lanes(builder_, builder_.CreateNSWSub(end, key), lanes_);
      store(same(-INFINITY), score_at(key));
      llvm::Value* allowed = exists;
      llvm::Value* added = nullptr;
      if (problem_.mask) {
        added = load_mask(query, key, exists);
        if (problem_.mask_is_bool) allowed = builder_.CreateAnd(exists, added);
      }
      // Masked keys are not read: a mostly empty cache costs little.
      emit_if(builder_, builder_.CreateOrReduce(allowed), [&] {
        llvm::Value* score = builder_.CreateFMul(products(query, key, end), same(problem_.scale));
        if (problem_.causal) score = hidden_by_order(builder_, score, not_after(query, key), problem_);
        if (added && !problem_.mask_is_bool) score = builder_.CreateFAdd(score, added);
        store(builder_.CreateSelect(allowed, score, same(-INFINITY)), score_at(key));
      });
    });
    auto [total, used] = emit_powers(end);
    // Values that a mask hides are not read; the causal mask's are, which are few.
    emit_values(total, problem_.mask ? scaffold_.smaller(used, end) : end);
  }

  llvm::Value* load_mask(llvm::Value* query, llvm::Value* key, llvm::Value* exists) {
    DType dtype = problem_.operands[3].dtype;
    llvm::Value* place = placed_->mask->at(builder_, query, key);
    if (problem_.mask->column_stride == Dim(0))
      return broadcast(builder_, load_element(builder_, dtype, place), lanes_);
    return load_lanes(builder_, dtype, place, lanes_, exists);
  }

  // Whether the key of each lane is none that comes after the query.
  llvm::Value* not_after(llvm::Value* query, llvm::Value* key) {
    const auto lanes = static_cast<unsigned>(lanes_);
    llvm::Value* keys = builder_.CreateAdd(builder_.CreateVectorSplat(lanes, key),
                                           lane_numbers(lanes_, builder_.getInt64Ty()));
    return builder_.CreateICmpSLE(keys, builder_.CreateVectorSplat(lanes, query));
  }

  // Dot products of the query with one key per lane; missing keys repeat the last one.
  llvm::Value* products(llvm::Value* query, llvm::Value* key, llvm::Value* end) {
    Values rows, sums(static_cast<size_t>(lanes_), same(0));
    llvm::Value* last = scaffold_.plus(end, -1);
    for (int i = 0; i < lanes_; ++i) {
      rows.push_back(placed_->key.at(builder_, scaffold_.smaller(scaffold_.plus(key, i), last), number(0)));
    }
    sums = emit_carrying_loop(builder_, number(0), number(problem_.width), lanes_, sums,
                              [&](llvm::Value* column, std::span<llvm::Value* const> now) {
                                llvm::Value* mask = columns_mask(problem_.width, column);
                                llvm::Value* factor =
                                    load_operand(placed_->query.at(builder_, query, column), mask);
                                Values next;
                                for (size_t i = 0; i < rows.size(); ++i) {
                                  llvm::Value* numbers = load_operand(
                                      builder_.CreateGEP(placed_->key.element, rows[i], column), mask);
                                  next.push_back(builder_.CreateIntrinsic(
                                      llvm::Intrinsic::fma, {numbers->getType()}, {numbers, factor, now[i]}));
                                }
                                return next;
                              });
    return sums_of_lanes(builder_, std::move(sums));
  }

  // Replaces scores by exponentials relative to the maximum; returns their sum, and the end of the nonzero
  // ones.
  std::pair<llvm::Value*, llvm::Value*> emit_powers(llvm::Value* end) {
    llvm::Value* start[] = {same(-INFINITY)};
    Values top = emit_carrying_loop(
        builder_, number(0), end, lanes_, start, [&](llvm::Value* key, std::span<llvm::Value* const> now) {
          llvm::Value* score = load(score_at(key));
          return Values{builder_.CreateSelect(builder_.CreateFCmpOGT(score, now[0]), score, now[0])};
        });
    llvm::Value* largest = builder_.CreateFPMaxReduce(top[0]);
    llvm::Value* none =
        builder_.CreateFCmpOEQ(largest, llvm::ConstantFP::get(builder_.getFloatTy(), -INFINITY));
    largest = builder_.CreateSelect(none, llvm::ConstantFP::get(builder_.getFloatTy(), 0.0), largest);
    largest = broadcast(builder_, largest, lanes_);
    llvm::Value* nothing[] = {same(0), number(0)};
    Values sums = emit_carrying_loop(
        builder_, number(0), end, lanes_, nothing, [&](llvm::Value* key, std::span<llvm::Value* const> now) {
          llvm::Value* power = apply_expansion(builder_, loops::math::exp_or_zero,
                                               builder_.CreateFSub(load(score_at(key)), largest));
          store(power, score_at(key));
          llvm::Value* counts = builder_.CreateOrReduce(builder_.CreateFCmpUNE(power, same(0)));
          return Values{builder_.CreateFAdd(now[0], power),
                        builder_.CreateSelect(counts, scaffold_.plus(key, lanes_), now[1])};
        });
    llvm::Value* total = sums_of_lanes(builder_, Values(static_cast<size_t>(lanes_), sums[0]));
    return {total, sums[1]};
  }

  void emit_values(llvm::Value* total, llvm::Value* end) {
    llvm::Value* factor = factor_of_sum(builder_, total, problem_);
    int64_t width = round_up(problem_.value_width, lanes_);
    for (int64_t first = 0; first < width; first += kVectors * lanes_) {
      auto vectors = static_cast<size_t>(std::min(kVectors, (width - first) / lanes_));
      Values sums(vectors, same(0));
      sums = emit_carrying_loop(
          builder_, number(0), end, 1, sums, [&](llvm::Value* key, std::span<llvm::Value* const> now) {
            llvm::Value* power =
                broadcast(builder_, builder_.CreateLoad(builder_.getFloatTy(), score_at(key)), lanes_);
            Values next;
            for (size_t v = 0; v < vectors; ++v) {
              llvm::Value* column = number(first + static_cast<int64_t>(v) * lanes_);
              llvm::Value* row = load_operand(placed_->value.at(builder_, key, column),
                                              columns_mask(problem_.value_width, column));
              next.push_back(
                  builder_.CreateIntrinsic(llvm::Intrinsic::fma, {row->getType()}, {row, power, now[v]}));
            }
            return next;
          });
      for (size_t v = 0; v < vectors; ++v) {
        llvm::Value* place = number(first + static_cast<int64_t>(v) * lanes_);
        store(builder_.CreateFMul(sums[v], factor), scaffold_.float_at(scaffold_.scratch(0), place));
      }
    }
  }

  const AttentionProblem& problem_;
  int lanes_;
  Scaffold scaffold_;
  Builder& builder_;
  EpilogueFunction epilogue_;
  llvm::Value* keys_ = nullptr;
  llvm::Value* scores_ = nullptr;
  std::optional<PlacedAttention> placed_;
};

}  // namespace

TemplateKernel plan_attention_stream(AttentionProblem problem, const Target& target) {
  TemplateKernel plan = begin_attention_plan(problem, "attention stream");
  plan.keeps_special_values = !problem.mask;
  int64_t lanes = problem.lanes(features_of(target));
  plan.launch.work_items = problem.batch * problem.queries;
  int64_t keys = problem.keys.constant().value_or(256);
  plan.launch.item_cost = keys * (problem.width + problem.value_width) / 8;
  Dim scores = ceil_divide(problem.keys, lanes) * Dim(lanes);
  plan.launch.scratch_bytes =
      (scores + Dim(round_up(problem.value_width, lanes))) * Dim(static_cast<int64_t>(sizeof(float)));
  plan.compile = [problem = std::move(problem), features = features_of(target),
                  arguments = plan.launch.symbols] {
    return AttentionStream(problem, features).emit(arguments);
  };
  return plan;
}

}  // namespace ingot::core::cpu
