// SPDX-License-Identifier: Apache-2.0
// Attention for blocks of queries, with a running softmax (FlashAttention). Lanes are queries: scores are
// [key][query], so the softmax needs no sum across lanes, and both products use the microkernel on keys and
// values in place.
//
// Products of bf16 read pairs: of columns as they lie in queries and keys, and of adjacent keys, for which
// values are copied. Scores, their softmax and all sums are f32.
//
//   for each batch, block of NR queries                                     (one work item)
//     pack the queries, scaled: [width][NR]                                 (bf16: scores are scaled instead)
//     for each block of kAttentionBlockKeys keys
//       for each MR keys: scores[MR][NR] = microkernel(keys, queries)
//       maximum per query; scores = exp(scores - maximum); factor = exp(old maximum - maximum)
//       (bf16: round the scores to pairs of keys, copy the values of the block to such pairs)
//       for each MR value columns: sums[MR][NR] = sums * factor + microkernel(values^T, scores)
//     divide by the totals, transpose to [query][value column], epilogue
#include <cmath>
#include <utility>

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/llvm/lanes.h"
#include "backends/cpu/compile/templates/attention_pairs.h"
#include "backends/cpu/compile/templates/attention_places.h"
#include "backends/cpu/compile/templates/attention_problem.h"
#include "backends/cpu/compile/templates/epilogue.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/cpu/compile/templates/tile.h"
#include "loops/math_expressions.h"

namespace ingot::core::cpu {

namespace {

using Values = std::vector<llvm::Value*>;

// Largest divisor of `count` up to `limit`: the product with values must not read past their last row.
int whole_rows(int64_t count, int limit) {
  int rows = limit;
  while (count % rows != 0) --rows;
  return rows;
}

class AttentionBlocks {
 public:
  AttentionBlocks(const AttentionProblem& problem, const TileShape& tile, CpuFeatures features)
      : problem_(problem),
        tile_(tile),
        lanes_(tile.lanes),
        group_(tile.group()),
        value_rows_(whole_rows(problem.value_width, tile.rows)),
        places_(problem, tile, tile.lanes),
        scaffold_(features, "attention", problem.symbols),
        builder_(scaffold_.builder),
        score_tiles_(scaffold_.code, tile, TileOperand::kRows, {1, problem.width / group_}, false),
        value_tiles_(scaffold_.code, {value_rows_, tile.vectors, tile.lanes, tile.a, tile.b},
                     TileOperand::kColumns, {1, kAttentionBlockKeys / group_}, false),
        epilogue_(scaffold_.code, tile_epilogue(problem.epilogue, epilogue_shape())) {}

  Image emit(const std::vector<std::string>& arguments) {
    begin_attention_kernel(scaffold_, epilogue_, problem_, arguments);
    queries_ = scaffold_.dims.emit(problem_.queries);
    keys_ = scaffold_.dims.emit(problem_.keys);
    llvm::Value* blocks = scaffold_.ceil_divide(queries_, tile_.columns());
    checked_ = builder_.CreateAlloca(builder_.getInt64Ty());
    may_skip_ = builder_.CreateAlloca(builder_.getInt1Ty());
    builder_.CreateStore(number(-1), checked_);
    scaffold_.for_each_item([&](llvm::Value* item) {
      batch_ = builder_.CreateUDiv(item, blocks);
      scaffold_.dims.values[kBatchSymbol] = batch_;
      placed_ = place_attention(scaffold_, problem_);
      emit_item(scaffold_.times(builder_.CreateURem(item, blocks), tile_.columns()));
    });
    return scaffold_.finish();
  }

 private:
  EpilogueShape epilogue_shape() const {
    return {problem_.result.rank() - 1,
            {},
            tile_.columns(),
            round_up(problem_.value_width, lanes_),
            problem_.value_width % lanes_ == 0};
  }

  bool multiplies_pairs() const { return group_ == 2; }
  llvm::Value* number(int64_t value) { return scaffold_.number(value); }
  llvm::VectorType* vector() {
    return llvm::FixedVectorType::get(builder_.getFloatTy(), static_cast<unsigned>(lanes_));
  }
  llvm::Value* same(double value) { return llvm::ConstantFP::get(vector(), value); }
  // Element (row, vector) of an array with one row of queries per element.
  llvm::Value* slot(int64_t place, llvm::Value* row, int v) {
    llvm::Value* offset = scaffold_.plus(scaffold_.times(row, tile_.columns()), v * lanes_);
    return scaffold_.float_at(scaffold_.scratch(place), offset);
  }
  llvm::Value* load(llvm::Value* pointer) {
    return builder_.CreateAlignedLoad(vector(), pointer,
                                      llvm::Align(static_cast<uint64_t>(lanes_) * sizeof(float)));
  }
  void store(llvm::Value* value, llvm::Value* pointer) {
    builder_.CreateAlignedStore(value, pointer, llvm::Align(static_cast<uint64_t>(lanes_) * sizeof(float)));
  }
  void emit_item(llvm::Value* query) {
    llvm::Value* rows = scaffold_.smaller(builder_.CreateNSWSub(queries_, query), number(tile_.columns()));
    pack_queries(query);
    for (int v = 0; v < tile_.vectors; ++v) {
      store(same(-INFINITY), slot(places_.largest, number(0), v));
      store(same(0), slot(places_.total, number(0), v));
    }
    emit_loop(builder_, number(0), number(problem_.value_width), 1, [&](llvm::Value* row) {
      for (int v = 0; v < tile_.vectors; ++v) store(same(0), slot(places_.sums, row, v));
    });
    llvm::Value* end = problem_.causal ? end_of_seen(query) : keys_;
    emit_loop(builder_, number(0), end, kAttentionBlockKeys, [&](llvm::Value* key) {
      llvm::Value* count = scaffold_.smaller(builder_.CreateNSWSub(end, key), number(kAttentionBlockKeys));
      emit_scores(key, count);
      if (problem_.mask) pack_mask(query, key, count);
      emit_powers(query, key, count);
      add_values(key, count);
    });
    emit_rows();
    llvm::Value* row = builder_.CreateNSWAdd(builder_.CreateNSWMul(batch_, queries_), query);
    epilogue_.call(builder_, scaffold_.scratch(places_.rows), row, rows, number(0),
                   number(problem_.value_width));
  }

  // The end of the keys that any query of the block sees, if the others may be left out.
  llvm::Value* end_of_seen(llvm::Value* query) {
    llvm::Value* seen = scaffold_.smaller(keys_, scaffold_.plus(query, tile_.columns()));
    emit_if(builder_, builder_.CreateICmpNE(builder_.CreateLoad(builder_.getInt64Ty(), checked_), batch_),
            [&] {
              builder_.CreateStore(batch_, checked_);
              // Valid for the later blocks of the batch entry, too.
              builder_.CreateStore(
                  may_skip_keys(scaffold_, problem_, *placed_, {seen, keys_, queries_, lanes_}), may_skip_);
            });
    return builder_.CreateSelect(builder_.CreateLoad(builder_.getInt1Ty(), may_skip_), seen, keys_);
  }

  // Transposes a square of an operand's rows to [column][row]; missing rows repeat the last one.
  Values load_transposed(const std::function<llvm::Value*(llvm::Value* row)>& load_row, llvm::Value* first,
                         llvm::Value* limit) {
    Values rows;
    llvm::Value* last = builder_.CreateNSWSub(limit, number(1));
    for (int i = 0; i < lanes_; ++i)
      rows.push_back(load_row(scaffold_.smaller(scaffold_.plus(first, i), last)));
    return transpose_lanes(builder_, std::move(rows));
  }

  void pack_queries(llvm::Value* query) {
    const int64_t words = problem_.width / group_;
    emit_loop(builder_, number(0), number(words), lanes_, [&](llvm::Value* word) {
      llvm::Value* mask = nullptr;
      if (words % lanes_ != 0)
        mask = first_lanes(builder_, builder_.CreateNSWSub(number(words), word), lanes_);
      for (int v = 0; v < tile_.vectors; ++v) {
        auto load_row = [&](llvm::Value* row) {
          llvm::Value* place = placed_->query.at(builder_, row, scaffold_.times(word, group_));
          return load_lanes(builder_, tile_.word(), place, lanes_, mask);
        };
        Values columns = load_transposed(load_row, scaffold_.plus(query, v * lanes_), queries_);
        for (int i = 0; i < lanes_; ++i) {
          llvm::Value* packed = columns[static_cast<size_t>(i)];
          if (!multiplies_pairs()) packed = builder_.CreateFMul(packed, same(problem_.scale));
          store(packed, slot(places_.query, scaffold_.plus(word, i), v));
        }
      }
    });
  }

  void emit_scores(llvm::Value* key, llvm::Value* count) {
    llvm::Value* last = builder_.CreateNSWSub(keys_, number(1));
    emit_loop(builder_, number(0), count, tile_.rows, [&](llvm::Value* tile) {
      llvm::Value* first = builder_.CreateNSWAdd(key, tile);
      for (int row = 0; row < tile_.rows; ++row) {
        llvm::Value* existing = scaffold_.smaller(scaffold_.plus(first, row), last);
        llvm::Value* place = builder_.CreateConstGEP1_64(
            builder_.getPtrTy(), scaffold_.scratch(places_.table), static_cast<uint64_t>(row));
        builder_.CreateStore(placed_->key.at(builder_, existing, number(0)), place);
      }
      llvm::Value* rows = scaffold_.smaller(builder_.CreateNSWSub(count, tile), number(tile_.rows));
      score_tiles_.call(
          builder_, rows,
          {scaffold_.scratch(places_.table), number(0), number(1), number(problem_.width / group_),
           scaffold_.scratch(places_.query), slot(places_.scores, tile, 0)});
    });
  }

  bool mask_is_by_query() const { return problem_.mask->row_stride != Dim(0); }

  // A mask that differs by query is converted to addends of the scores. Other masks are read where they are
  // used.
  void pack_mask(llvm::Value* query, llvm::Value* key, llvm::Value* count) {
    if (!mask_is_by_query()) return;
    emit_loop(builder_, number(0), count, lanes_, [&](llvm::Value* at) {
      llvm::Value* exists = first_lanes(builder_, builder_.CreateNSWSub(count, at), lanes_);
      for (int v = 0; v < tile_.vectors; ++v) {
        auto load_row = [&](llvm::Value* row) {
          return load_mask_row(row, builder_.CreateNSWAdd(key, at), exists);
        };
        Values columns = load_transposed(load_row, scaffold_.plus(query, v * lanes_), queries_);
        for (int i = 0; i < lanes_; ++i)
          store(columns[static_cast<size_t>(i)], slot(places_.mask, scaffold_.plus(at, i), v));
      }
    });
  }

  llvm::Value* load_mask_row(llvm::Value* row, llvm::Value* key, llvm::Value* exists) {
    DType dtype = problem_.operands[3].dtype;
    llvm::Value* place = placed_->mask->at(builder_, row, key);
    bool same_for_keys = problem_.mask->column_stride == Dim(0);
    llvm::Value* value = same_for_keys ? broadcast(builder_, load_element(builder_, dtype, place), lanes_)
                                       : load_lanes(builder_, dtype, place, lanes_, exists);
    return problem_.mask_is_bool ? builder_.CreateSelect(value, same(0), same(-INFINITY)) : value;
  }

  llvm::Value* masked_score(llvm::Value* score, llvm::Value* query, llvm::Value* key, llvm::Value* at,
                            int v) {
    llvm::Value* index = builder_.CreateNSWAdd(key, at);
    if (multiplies_pairs()) score = builder_.CreateFMul(score, same(problem_.scale));
    if (problem_.causal) {
      llvm::Value* first =
          builder_.CreateVectorSplat(static_cast<unsigned>(lanes_), scaffold_.plus(query, v * lanes_));
      llvm::Value* queries = builder_.CreateAdd(first, lane_numbers(lanes_, builder_.getInt64Ty()));
      llvm::Value* keys = builder_.CreateVectorSplat(static_cast<unsigned>(lanes_), index);
      score = hidden_by_order(builder_, score, builder_.CreateICmpSLE(keys, queries), problem_);
    }
    if (!problem_.mask) return score;
    if (mask_is_by_query()) return builder_.CreateFAdd(score, load(slot(places_.mask, at, v)));
    llvm::Value* element =
        load_element(builder_, problem_.operands[3].dtype, placed_->mask->at(builder_, number(0), index));
    llvm::Value* all = broadcast(builder_, element, lanes_);
    if (!problem_.mask_is_bool) return builder_.CreateFAdd(score, all);
    return hidden_by_sum(builder_, score, all);
  }

  // Replaces scores by exponentials relative to the maximum so far.
  void emit_powers(llvm::Value* query, llvm::Value* key, llvm::Value* count) {
    Values before, largest, total, factor;
    for (int v = 0; v < tile_.vectors; ++v) before.push_back(load(slot(places_.largest, number(0), v)));
    bool changes = problem_.causal || problem_.mask || multiplies_pairs();
    largest = emit_carrying_loop(
        builder_, number(0), count, 1, before, [&](llvm::Value* at, std::span<llvm::Value* const> now) {
          Values next;
          for (int v = 0; v < tile_.vectors; ++v) {
            llvm::Value* score = masked_score(load(slot(places_.scores, at, v)), query, key, at, v);
            if (changes) store(score, slot(places_.scores, at, v));
            llvm::Value* top = now[static_cast<size_t>(v)];
            next.push_back(builder_.CreateSelect(builder_.CreateFCmpOGT(score, top), score, top));
          }
          return next;
        });
    for (int v = 0; v < tile_.vectors; ++v) {
      llvm::Value*& top = largest[static_cast<size_t>(v)];
      store(top, slot(places_.largest, number(0), v));
      // If all keys are masked, the difference of infinities must not become NaN.
      top = builder_.CreateSelect(builder_.CreateFCmpOEQ(top, same(-INFINITY)), same(0), top);
      factor.push_back(power(builder_.CreateFSub(before[static_cast<size_t>(v)], top)));
      store(factor.back(), slot(places_.factor, number(0), v));
      llvm::Value* sum = load(slot(places_.total, number(0), v));
      total.push_back(builder_.CreateFMul(sum, factor.back()));
    }
    total = emit_carrying_loop(
        builder_, number(0), count, group_, total, [&](llvm::Value* at, std::span<llvm::Value* const> now) {
          Values next;
          for (int v = 0; v < tile_.vectors; ++v) {
            const auto top = largest[static_cast<size_t>(v)], before_these = now[static_cast<size_t>(v)];
            next.push_back(builder_.CreateFAdd(before_these, store_powers(at, count, v, top)));
          }
          return next;
        });
    for (int v = 0; v < tile_.vectors; ++v)
      store(total[static_cast<size_t>(v)], slot(places_.total, number(0), v));
  }

  // The exponentials of a step of the product with values, in the place of scores that were read. Returns
  // their sum.
  llvm::Value* store_powers(llvm::Value* at, llvm::Value* count, int v, llvm::Value* top) {
    llvm::Value* place = slot(places_.scores, at, v);
    llvm::Value* first = power(builder_.CreateFSub(load(place), top));
    if (!multiplies_pairs()) {
      store(first, place);
      return first;
    }
    llvm::Value* next = scaffold_.plus(at, 1);
    llvm::Value* second = power(builder_.CreateFSub(load(slot(places_.scores, next, v)), top));
    second = builder_.CreateSelect(builder_.CreateICmpSLT(next, count), second, same(0));
    store(rounded_pairs(builder_, first, second), slot(places_.scores, builder_.CreateLShr(at, 1), v));
    return builder_.CreateFAdd(first, second);
  }

  llvm::Value* power(llvm::Value* exponent) {
    return apply_expansion(builder_, loops::math::exp_or_zero, exponent);
  }

  // sums = sums * factor + values^T exponentials
  void add_values(llvm::Value* key, llvm::Value* count) {
    llvm::Value* values = scaffold_.scratch(places_.values);
    if (multiplies_pairs())
      pack_value_pairs(scaffold_, {placed_->value, key, count, problem_.value_width, lanes_}, values);
    emit_loop(builder_, number(0), number(problem_.value_width), value_rows_, [&](llvm::Value* column) {
      llvm::Value* part = scaffold_.scratch(places_.part);
      value_tiles_.call(
          builder_, number(value_rows_),
          {multiplies_pairs() ? scaffold_.float_at(values, column) : placed_->value.at(builder_, key, column),
           multiplies_pairs() ? number(round_up(problem_.value_width, lanes_)) : placed_->value.row_stride,
           number(1), scaffold_.ceil_divide(count, group_), scaffold_.scratch(places_.scores), part});
      emit_loop(builder_, number(0), number(value_rows_), 1, [&](llvm::Value* row) {
        for (int v = 0; v < tile_.vectors; ++v) {
          llvm::Value* place = slot(places_.sums, builder_.CreateNSWAdd(column, row), v);
          llvm::Value* before = builder_.CreateFMul(load(place), load(slot(places_.factor, number(0), v)));
          store(builder_.CreateFAdd(before, load(slot(places_.part, row, v))), place);
        }
      });
    });
  }

  // Divides the sums and transposes them: [value column][query] to [query][value column].
  void emit_rows() {
    int64_t width = round_up(problem_.value_width, lanes_);
    for (int v = 0; v < tile_.vectors; ++v) {
      llvm::Value* total = load(slot(places_.total, number(0), v));
      llvm::Value* factor = factor_of_sum(builder_, total, problem_);
      emit_loop(builder_, number(0), number(width), lanes_, [&](llvm::Value* column) {
        Values rows;
        for (int i = 0; i < lanes_; ++i) {
          llvm::Value* sums = load(slot(places_.sums, scaffold_.plus(column, i), v));
          rows.push_back(builder_.CreateFMul(sums, factor));
        }
        rows = transpose_lanes(builder_, std::move(rows));
        for (int i = 0; i < lanes_; ++i) {
          llvm::Value* place = scaffold_.plus(column, (v * lanes_ + i) * width);
          store(rows[static_cast<size_t>(i)], scaffold_.float_at(scaffold_.scratch(places_.rows), place));
        }
      });
    }
  }

  const AttentionProblem& problem_;
  TileShape tile_;
  int lanes_;
  int group_;  // of the tile: adjacent numbers in a step
  int value_rows_;
  AttentionPlaces places_;
  Scaffold scaffold_;
  Builder& builder_;
  TileFunctions score_tiles_;
  TileFunctions value_tiles_;
  EpilogueFunction epilogue_;
  llvm::Value* queries_ = nullptr;
  llvm::Value* keys_ = nullptr;
  llvm::Value* batch_ = nullptr;
  llvm::Value* checked_ = nullptr;   // the last batch entry for which the next was found out
  llvm::Value* may_skip_ = nullptr;  // whether keys that no query of a block sees may be left out
  std::optional<PlacedAttention> placed_;
};

}  // namespace

TemplateKernel plan_attention_blocks(AttentionProblem problem, const Target& target) {
  TemplateKernel plan = begin_attention_plan(problem, "attention blocks");
  const DType dtype = problem.operands[0].dtype;
  TileShape tile = choose_tile(problem.queries.constant().value_or(32), features_of(target), dtype, dtype);
  plan.launch.work_items = problem.batch * ceil_divide(problem.queries, tile.columns());
  int64_t keys = problem.keys.constant().value_or(kAttentionBlockKeys);
  plan.launch.item_cost = keys * tile.columns() * (problem.width + problem.value_width) / (45 * tile.group());
  plan.launch.scratch_bytes = AttentionPlaces(problem, tile, tile.lanes).end;
  plan.compile = [problem = std::move(problem), tile, features = features_of(target),
                  arguments = plan.launch.symbols] {
    return AttentionBlocks(problem, tile, features).emit(arguments);
  };
  return plan;
}

}  // namespace ingot::core::cpu
