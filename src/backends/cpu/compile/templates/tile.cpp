// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/tile.h"

#include <fmt/format.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/llvm/float_tables.h"
#include "backends/cpu/compile/templates/matrix_tile.h"

namespace ingot::core::cpu {

namespace {

// Bytes of B to prefetch ahead: covers the memory latency at full bandwidth. Linear streams with 4 KiB of
// software prefetch reached the DRAM roof (61 to 64 GB/s with two threads on Zen 4).
constexpr int64_t kPrefetchDistance = 4096;
// Tiles of up to this many rows are bound by reading B, not by multiplying: 4 FMAs per loaded vector.
constexpr int kStreamingRows = 4;

// Emits the body of one microkernel.
struct TileBody {
  Builder& builder;
  TileShape shape;  // with the rows of this function
  int table_rows;   // pointers per segment in the table of row pointers
  TileOperand operand;
  bool prefetch;
  bool is_aarch64;

  bool is_streaming() const { return shape.rows <= kStreamingRows; }

  using Sums = std::vector<llvm::Value*>;
  llvm::Type* vector() const {  // also of one lane
    return llvm::FixedVectorType::get(stored_type(builder, shape.sum()), static_cast<unsigned>(shape.lanes));
  }
  llvm::Align alignment() const { return llvm::Align(static_cast<uint64_t>(shape.vector_bytes())); }

  llvm::Value* b_row(llvm::Value* b, llvm::Value* step) const {
    return builder.CreateGEP(builder.getInt8Ty(), b,
                             builder.CreateNSWMul(step, builder.getInt64(shape.step_bytes())));
  }

  bool multiplies_pairs() const { return shape.a == DType::kBF16; }
  bool multiplies_bytes() const { return shape.a == DType::kU8; }
  llvm::Type* word() const { return stored_type(builder, shape.word()); }
  llvm::Type* pairs() const { return llvm::FixedVectorType::get(builder.getBFloatTy(), 2 * shape.lanes); }
  llvm::Type* shorts() const { return llvm::FixedVectorType::get(builder.getInt16Ty(), 2 * shape.lanes); }

  // Words as a multiplication takes them: one register, the even and the odd bytes as i16, or on aarch64,
  // which has no sums of neighbouring products, each byte of the words as i16.
  using Words = std::vector<llvm::Value*>;
  Words as_factors(llvm::Value* words, bool is_signed) const {
    if (!multiplies_bytes() || shape.sums_quads) return {words};
    words = builder.CreateBitCast(words, shorts());
    const Words halves =
        is_signed ? Words{builder.CreateAShr(builder.CreateShl(words, 8), 8), builder.CreateAShr(words, 8)}
                  : Words{builder.CreateAnd(words, 0xff), builder.CreateLShr(words, 8)};
    if (!is_aarch64) return halves;
    return {every_second(halves[0], 0), every_second(halves[1], 0), every_second(halves[0], 1),
            every_second(halves[1], 1)};
  }
  llvm::Value* every_second(llvm::Value* numbers, int first) const {
    std::vector<int> lanes;
    for (int lane = 0; lane < shape.lanes; ++lane) lanes.push_back(2 * lane + first);
    return builder.CreateShuffleVector(numbers, lanes);
  }

  // Vector `v` of a row of B.
  llvm::Value* load_columns(llvm::Value* b, int v) const {
    llvm::Value* place =
        builder.CreateConstGEP1_64(builder.getInt8Ty(), b, v * shape.step_bytes() / shape.vectors);
    if (multiplies_pairs()) return builder.CreateAlignedLoad(pairs(), place, alignment());
    if (shape.b == shape.a || multiplies_bytes())
      return builder.CreateAlignedLoad(vector(), place, alignment());
    return load_as_float(builder, shape.b, place, shape.lanes);
  }
  // A row of B.
  Sums load_step(llvm::Value* b) const {
    if (shape.by_tables) return load_by_tables(builder, shape.b, b);
    Sums vectors;
    for (int v = 0; v < shape.vectors; ++v) vectors.push_back(load_columns(b, v));
    return vectors;
  }
  // Accumulators of what load_step returns, in the order of the columns.
  Sums in_order(const Sums& sums) const {
    if (!shape.by_tables) return sums;
    Sums ordered;
    for (auto row = sums.begin(); row != sums.end(); row += shape.vectors) {
      const Sums vectors = in_order_of_numbers(builder, Sums(row, row + shape.vectors));
      ordered.insert(ordered.end(), vectors.begin(), vectors.end());
    }
    return ordered;
  }
  llvm::Value* load_word(llvm::Value* place) const {
    llvm::Value* spread = builder.CreateVectorSplat(
        shape.lanes, builder.CreateAlignedLoad(word(), place, llvm::Align(bit_width(shape.a) / 8)));
    return multiplies_pairs() ? builder.CreateBitCast(spread, pairs()) : spread;
  }
  // Sums of neighbouring products of i16.
  llvm::Value* multiply_shorts(llvm::Value* a, llvm::Value* b) const {
    return builder.CreateIntrinsic(
        shape.lanes == 16 ? llvm::Intrinsic::x86_avx512_pmaddw_d_512 : llvm::Intrinsic::x86_avx2_pmadd_wd, {},
        {a, b});
  }
  llvm::Value* multiply_to_ints(llvm::Value* a, llvm::Value* b) const {
    llvm::Type* ints = a->getType()->getWithNewBitWidth(32);
    return builder.CreateNSWMul(builder.CreateSExt(a, ints), builder.CreateSExt(b, ints));
  }
  llvm::Value* multiply_add(const Words& a, const Words& b, llvm::Value* sum) const {
    if (multiplies_pairs())
      return builder.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {}, {sum, a[0], b[0]});
    if (multiplies_bytes() && shape.sums_quads)
      return builder.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpdpbusd_512, {}, {sum, a[0], b[0]});
    if (multiplies_bytes()) {
      for (size_t i = 0; i < a.size(); ++i)
        sum = builder.CreateAdd(sum, is_aarch64 ? multiply_to_ints(a[i], b[i]) : multiply_shorts(a[i], b[i]));
      return sum;
    }
    return builder.CreateIntrinsic(llvm::Intrinsic::fma, {vector()}, {a[0], b[0], sum});
  }

  std::vector<llvm::Value*> row_pointers(const TileCall& call, llvm::Value* segment) const {
    std::vector<llvm::Value*> rows;
    llvm::Value* first = builder.CreateNSWMul(segment, builder.getInt64(table_rows));
    for (int row = 0; row < shape.rows; ++row) {
      llvm::Value* place = builder.CreateNSWAdd(first, builder.getInt64(row));
      rows.push_back(
          builder.CreateLoad(builder.getPtrTy(), builder.CreateGEP(builder.getPtrTy(), call.a, place)));
    }
    return rows;
  }

  void prefetch_row(llvm::Value* b) const {
    for (int64_t offset = 0; offset < shape.step_bytes(); offset += kCacheLine)
      prefetch_line(builder, builder.CreateConstGEP1_64(builder.getInt8Ty(), b, kPrefetchDistance + offset),
                    3);
  }

  void prefetch_next(const TileCall& call, llvm::Value* step) const {
    llvm::Value* bytes = builder.CreateNSWMul(step, call.next_stride);
    prefetch_line(builder, builder.CreateGEP(builder.getInt8Ty(), call.next, bytes), 2);
  }

  // One step: a row of B times a broadcast word of each row of A.
  Sums multiply(std::span<llvm::Value* const> sums, llvm::Value* b,
                const std::function<llvm::Value*(int)>& a) const {
    Sums next(sums.begin(), sums.end());
    std::vector<Words> columns;
    if (prefetch && is_streaming()) prefetch_row(b);
    for (llvm::Value* vector : load_step(b)) columns.push_back(as_factors(vector, true));
    for (int row = 0; row < shape.rows; ++row) {
      const Words spread = as_factors(load_word(a(row)), false);
      for (int v = 0; v < shape.vectors; ++v) {
        llvm::Value*& sum = next[row * shape.vectors + v];
        sum = multiply_add(spread, columns[v], sum);
      }
    }
    return next;
  }

  // Accumulates the steps [begin, end) of a segment.
  Sums run_steps(const TileCall& call, llvm::Value* segment, llvm::Value* begin, llvm::Value* end,
                 std::span<llvm::Value* const> sums) const {
    llvm::Value* first = builder.CreateNSWMul(segment, call.count);
    llvm::Value* b = b_row(call.b, first);
    std::vector<llvm::Value*> rows;
    if (operand == TileOperand::kRows) rows = row_pointers(call, segment);
    return emit_carrying_loop(builder, begin, end, 1, sums,
                              [&](llvm::Value* step, std::span<llvm::Value* const> now) {
                                if (prefetch && !is_streaming())
                                  prefetch_next(call, builder.CreateNSWAdd(first, step));
                                return multiply(now, b_row(b, step), [&](int row) -> llvm::Value* {
                                  if (operand == TileOperand::kRows)
                                    return builder.CreateGEP(word(), rows[row], step);
                                  llvm::Value* place = builder.CreateNSWMul(step, call.stride);
                                  llvm::Value* column = builder.CreateGEP(word(), call.a, place);
                                  return builder.CreateConstGEP1_64(word(), column, row);
                                });
                              });
  }

  Sums zeros() const { return Sums(shape.rows * shape.vectors, llvm::Constant::getNullValue(vector())); }

  void store(const TileCall& call, std::span<llvm::Value* const> sums) const {
    for (size_t i = 0; i < sums.size(); ++i) {
      builder.CreateAlignedStore(sums[i], builder.CreateConstGEP1_64(vector(), call.sums, i), alignment());
    }
  }

  // Accumulates the segments [begin, end) from zero.
  Sums run_segments(const TileCall& call, llvm::Value* begin, llvm::Value* end) const {
    return emit_carrying_loop(builder, begin, end, 1, zeros(),
                              [&](llvm::Value* segment, std::span<llvm::Value* const> now) {
                                return run_steps(call, segment, builder.getInt64(0), call.count, now);
                              });
  }

  llvm::Value* smaller(llvm::Value* a, llvm::Value* b) const {
    return builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
  }

  // Adds the accumulators to memory.
  void add(const TileCall& call, Sums sums) const {
    for (size_t i = 0; i < sums.size(); ++i) {
      llvm::Value* place = builder.CreateConstGEP1_64(vector(), call.sums, i);
      llvm::Value* before = builder.CreateAlignedLoad(vector(), place, alignment());
      sums[i] =
          is_floating(shape.sum()) ? builder.CreateFAdd(before, sums[i]) : builder.CreateAdd(before, sums[i]);
    }
    store(call, sums);
  }

  void emit_parts_of_segments(const TileCall& call) const {
    emit_loop(builder, builder.getInt64(0), call.segments, 1, [&](llvm::Value* segment) {
      emit_loop(builder, builder.getInt64(0), call.count, kLongestRun, [&](llvm::Value* begin) {
        llvm::Value* end = builder.CreateNSWAdd(begin, builder.getInt64(kLongestRun));
        add(call, in_order(run_steps(call, segment, begin, smaller(end, call.count), zeros())));
      });
    });
  }

  void emit(const TileCall& call, const TileBounds& bounds) const {
    llvm::Value* first = builder.getInt64(0);
    if (bounds.count && bounds.segments * *bounds.count <= kLongestRun)
      return store(call, in_order(run_segments(call, first, call.segments)));
    store(call, zeros());
    if (!bounds.count || *bounds.count > kLongestRun) return emit_parts_of_segments(call);
    const int64_t together = kLongestRun / *bounds.count;
    emit_loop(builder, first, call.segments, together, [&](llvm::Value* begin) {
      llvm::Value* end = builder.CreateNSWAdd(begin, builder.getInt64(together));
      add(call, in_order(run_segments(call, begin, smaller(end, call.segments))));
    });
  }
};

llvm::FunctionType* tile_type(llvm::LLVMContext& context) {
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::Type* number = llvm::Type::getInt64Ty(context);
  return llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                 {pointer, number, number, number, pointer, pointer, pointer, number}, false);
}
TileCall call_in(llvm::Function& function) {
  const auto argument = [&](unsigned i) { return function.getArg(i); };
  return {argument(0), argument(1), argument(2), argument(3),
          argument(4), argument(5), argument(6), argument(7)};
}

}  // namespace

TileFunctions::TileFunctions(Code& code, TileShape shape, TileOperand operand, const TileBounds& bounds,
                             bool prefetch)
    : functions_(
          code, tile_type(*code.context), fmt::format("tile_{{}}x{}", shape.columns()),
          operand == TileOperand::kColumns ? std::vector{shape.rows} : tile_row_counts(shape, bounds.rows),
          [&](Builder& builder, llvm::Function& function, int rows) {
            TileShape part = shape;
            part.rows = rows;
            const TileCall call = call_in(function);
            if (shape.by_matrices) return emit_matrix_tile(builder, part, call, prefetch);
            TileBody{builder, part, shape.rows, operand, prefetch, code.features.has(CpuFeature::kAarch64)}
                .emit(call, bounds);
          }) {}

void TileFunctions::call(Builder& builder, llvm::Value* rows, const TileCall& call) const {
  functions_.call(builder, rows,
                  {call.a, call.stride, call.segments, call.count, call.b, call.sums,
                   call.next != nullptr ? call.next : call.b,
                   call.next != nullptr ? call.next_stride : builder.getInt64(0)});
}

}  // namespace ingot::core::cpu
