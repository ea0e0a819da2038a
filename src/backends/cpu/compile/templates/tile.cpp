// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/tile.h"

#include <array>

#include <fmt/format.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "backends/cpu/compile/llvm/elements.h"
#include "ops/narrow_weight.h"

namespace ingot::core::cpu {

namespace {

// Bytes of B to prefetch ahead: covers the memory latency at full bandwidth. Linear streams with 4 KiB of
// software prefetch reached the DRAM roof (61 to 64 GB/s with two threads on Zen 4).
constexpr int64_t kPrefetchDistance = 4096;
// Tiles of up to this many rows are bound by reading B, not by multiplying: 4 FMAs per loaded vector.
constexpr int kStreamingRows = 4;

struct Candidate {
  TileShape shape;
  double slowdown;  // time per multiply-add, relative to the best tile
};

// x86-64-v4 has 32 registers of 16 f32, v3 has 16 of 8: MR * vectors accumulators + one row of B + one
// broadcast of A must fit. 8x48 reached 96 % of the FMA roof on Zen 4, 12x32 was 10 %
// slower. The 32 registers of 4 f32 of aarch64 are taken as 16 of 8. Registers hold half as many f64.
constexpr std::array kWide{Candidate{{8, 3, 16}, 1.0}, Candidate{{6, 4, 16}, 1.0},
                           Candidate{{8, 2, 16}, 1.01}, Candidate{{8, 1, 16}, 1.1}};
constexpr std::array kNarrow{Candidate{{6, 2, 8}, 1.0}, Candidate{{4, 3, 8}, 1.02},
                             Candidate{{8, 1, 8}, 1.15}};
// Bytes that are multiplied as i16: two registers for each vector of B, and two for A's broadcast.
constexpr std::array kWideShorts{Candidate{{6, 3, 16}, 1.0}, Candidate{{8, 2, 16}, 1.0},
                                 Candidate{{8, 1, 16}, 1.1}};
constexpr std::array kNarrowShorts{Candidate{{4, 2, 8}, 1.0}, Candidate{{8, 1, 8}, 1.1}};

std::span<const Candidate> candidates_for(CpuFeatures features, bool multiplies_shorts) {
  const bool is_wide = features.has(CpuFeature::kX86V4);
  if (multiplies_shorts) return is_wide ? std::span<const Candidate>(kWideShorts) : kNarrowShorts;
  return is_wide ? std::span<const Candidate>(kWide) : kNarrow;
}

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

  // Locality as in llvm.prefetch: 3 is the first-level cache, 2 the second.
  void prefetch_line(llvm::Value* address, uint32_t locality) const {
    builder.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder.getPtrTy()},
                            {address, builder.getInt32(0), builder.getInt32(locality), builder.getInt32(1)});
  }

  void prefetch_row(llvm::Value* b) const {
    for (int64_t offset = 0; offset < shape.step_bytes(); offset += kCacheLine)
      prefetch_line(builder.CreateConstGEP1_64(builder.getInt8Ty(), b, kPrefetchDistance + offset), 3);
  }

  void prefetch_next(const TileCall& call, llvm::Value* step) const {
    llvm::Value* bytes = builder.CreateNSWMul(step, call.next_stride);
    prefetch_line(builder.CreateGEP(builder.getInt8Ty(), call.next, bytes), 2);
  }

  // One step: a row of B times a broadcast word of each row of A.
  Sums multiply(std::span<llvm::Value* const> sums, llvm::Value* b,
                const std::function<llvm::Value*(int)>& a) const {
    Sums next(sums.begin(), sums.end());
    std::vector<Words> columns;
    if (prefetch && is_streaming()) prefetch_row(b);
    for (int v = 0; v < shape.vectors; ++v) columns.push_back(as_factors(load_columns(b, v), true));
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
        add(call, run_steps(call, segment, begin, smaller(end, call.count), zeros()));
      });
    });
  }

  void emit(const TileCall& call, const TileBounds& bounds) const {
    llvm::Value* first = builder.getInt64(0);
    if (bounds.count && bounds.segments * *bounds.count <= kLongestRun)
      return store(call, run_segments(call, first, call.segments));
    store(call, zeros());
    if (!bounds.count || *bounds.count > kLongestRun) return emit_parts_of_segments(call);
    const int64_t together = kLongestRun / *bounds.count;
    emit_loop(builder, first, call.segments, together, [&](llvm::Value* begin) {
      llvm::Value* end = builder.CreateNSWAdd(begin, builder.getInt64(together));
      add(call, run_segments(call, begin, smaller(end, call.segments)));
    });
  }
};

}  // namespace

std::string to_string(const TileShape& tile) {
  return fmt::format("tile {}x{}x{} {} {}{}", tile.rows, tile.vectors, tile.lanes, name(tile.a), name(tile.b),
                     tile.sums_quads ? " quads" : "");
}

bool multiplies_bf16(CpuFeatures features) {
  return features.has(CpuFeature::kAvx512Bf16) && !features.has(CpuFeature::kAvx512Fp16);
}

bool has_tiles(DType a, DType b, CpuFeatures features) {
  if (a == DType::kBF16) return b == a && multiplies_bf16(features);
  if (a == DType::kU8) return b == DType::kI8;
  return (a == DType::kF64 && b == a) || (a == DType::kF32 && (b == a || ops::is_narrow_weight(b)));
}

TileShape choose_tile(int64_t columns, CpuFeatures features, DType a, DType b) {
  const bool sums_quads = a == DType::kU8 && features.has(CpuFeature::kAvx512Vnni);
  const std::span<const Candidate> candidates = candidates_for(features, a == DType::kU8 && !sums_quads);
  const Candidate* best = &candidates[0];
  auto cost = [&](const Candidate& candidate) {
    const int64_t width = candidate.shape.columns() / (a == DType::kF64 ? 2 : 1);
    return candidate.slowdown * static_cast<double>((columns + width - 1) / width * width);
  };
  for (const Candidate& candidate : candidates) {
    if (columns > 0 && cost(candidate) < cost(*best)) best = &candidate;
  }
  TileShape tile = best->shape;
  if (a == DType::kF64) tile.lanes /= 2;
  tile.a = a;
  tile.b = b;
  tile.sums_quads = sums_quads;
  return tile;
}

std::vector<int> tile_row_counts(const TileShape& tile, std::optional<int64_t> rows) {
  std::vector<int> counts{tile.rows};
  while (counts.back() > 1) counts.push_back((counts.back() + 1) / 2);
  if (!rows) return counts;
  const int64_t rest = *rows % tile.rows;
  std::erase_if(counts, [&](int count) {
    const bool for_whole = count == tile.rows && *rows >= tile.rows;
    const int smaller = count == 1 ? 0 : (count + 1) / 2;
    const bool for_rest = smaller < rest && rest <= count;
    return !for_whole && !for_rest;
  });
  return counts.empty() ? std::vector{tile.rows} : counts;
}

TileFunctions::TileFunctions(Code& code, TileShape shape, TileOperand operand, const TileBounds& bounds,
                             bool prefetch)
    : row_counts_(operand == TileOperand::kRows ? tile_row_counts(shape, bounds.rows)
                                                : std::vector{shape.rows}) {
  llvm::LLVMContext& context = *code.context;
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::Type* number = llvm::Type::getInt64Ty(context);
  llvm::Type* nothing = llvm::Type::getVoidTy(context);
  auto* type = llvm::FunctionType::get(
      nothing, {pointer, number, number, number, pointer, pointer, pointer, number}, false);
  for (int rows : row_counts_) {
    std::string name = "tile_" + std::to_string(rows) + "x" + std::to_string(shape.columns());
    llvm::Function* function = create_function(code, type, name);
    function->addFnAttr(llvm::Attribute::NoInline);
    Builder builder(llvm::BasicBlock::Create(context, "entry", function));
    TileShape part = shape;
    part.rows = rows;
    TileBody body{builder, part, shape.rows, operand, prefetch, code.features.has(CpuFeature::kAarch64)};
    body.emit({function->getArg(0), function->getArg(1), function->getArg(2), function->getArg(3),
               function->getArg(4), function->getArg(5), function->getArg(6), function->getArg(7)},
              bounds);
    builder.CreateRetVoid();
    functions_.push_back(function);
  }
}

void TileFunctions::call(Builder& builder, llvm::Value* rows, const TileCall& call) const {
  std::function<void(size_t)> choose = [&](size_t i) {
    auto invoke = [&] {
      builder.CreateCall(functions_[i], {call.a, call.stride, call.segments, call.count, call.b, call.sums,
                                         call.next != nullptr ? call.next : call.b,
                                         call.next != nullptr ? call.next_stride : builder.getInt64(0)});
    };
    if (i + 1 == row_counts_.size()) return invoke();
    emit_if(builder, builder.CreateICmpSGT(rows, builder.getInt64(row_counts_[i + 1])), invoke,
            [&] { choose(i + 1); });
  };
  choose(0);
}

}  // namespace ingot::core::cpu
