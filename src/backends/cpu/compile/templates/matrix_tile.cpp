// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/matrix_tile.h"

#include <array>

#include <llvm/IR/IntrinsicsX86.h>

#include "backends/cpu/compile/llvm/elements.h"

namespace ingot::core::cpu {
namespace {

constexpr int kWordBytes = 4;
constexpr int64_t kRowBytes = int64_t{kMatrixWords} * kWordBytes;
// Packed words up to this many are copied without a loop.
constexpr int64_t kFewWords = 8 * kMatrixWords;

// Numbers of the registers: those of sums come first.
constexpr int kFirstOfA = 4, kFirstOfB = 6, kRegisters = 8;

struct MatrixTile {
  Builder& builder;
  const TileShape& shape;
  const TileCall& call;
  bool prefetch;

  int row_registers() const { return static_cast<int>(ceil_divide(shape.rows, kMatrixRows)); }
  bool is_streaming() const { return row_registers() == 1; }
  int sums_at(int row, int v) const { return row * shape.vectors + v; }

  llvm::Value* number(int64_t value) const { return builder.getInt64(static_cast<uint64_t>(value)); }
  llvm::Value* times(llvm::Value* a, int64_t b) const { return builder.CreateNSWMul(a, number(b)); }
  llvm::Value* byte_at(llvm::Value* pointer, llvm::Value* offset) const {
    return builder.CreateGEP(builder.getInt8Ty(), pointer, offset);
  }
  llvm::Value* register_number(int i) const { return builder.getInt8(static_cast<uint8_t>(i)); }

  void load(int to, llvm::Value* from, llvm::Value* stride) const {
    builder.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64, {}, {register_number(to), from, stride});
  }
  void multiply(int row, int v) const {
    const auto intrinsic =
        shape.a == DType::kBF16 ? llvm::Intrinsic::x86_tdpbf16ps : llvm::Intrinsic::x86_tdpbusd;
    builder.CreateIntrinsic(
        intrinsic, {},
        {register_number(sums_at(row, v)), register_number(kFirstOfA + row), register_number(kFirstOfB + v)});
  }
  void load_rows(int row, llvm::Value* step) const {
    llvm::Value* rows = byte_at(call.a, times(call.stride, int64_t{row} * kMatrixRows));
    load(kFirstOfA + row, byte_at(rows, times(step, kWordBytes)), call.stride);
  }
  void load_columns(int v, llvm::Value* b) const {
    load(kFirstOfB + v, byte_at(b, number(v * kRowBytes)), number(shape.step_bytes()));
  }

  // 16 steps from `step` on, which `b` points to.
  void multiply_steps(llvm::Value* step, llvm::Value* b) const {
    for (int v = 0; v < shape.vectors; ++v) load_columns(v, b);
    for (int row = 0; row < row_registers(); ++row) {
      load_rows(row, step);
      for (int v = 0; v < shape.vectors; ++v) multiply(row, v);
    }
  }

  // Few rows wait for B. The others leave it to the share of the next panel that each of their steps reads.
  void prefetch_lines(llvm::Value* step, llvm::Value* b) const {
    constexpr int64_t kDistance = 4096;  // bytes
    if (is_streaming()) {
      for (int64_t line = 0; line < kMatrixRows * shape.step_bytes(); line += kCacheLine)
        prefetch_line(builder, byte_at(b, number(kDistance + line)), 3);
      return;
    }
    constexpr int kLines = 8;  // the share of four tiles that pass over a panel; more tiles need fewer
    llvm::Value* first = byte_at(call.next, builder.CreateNSWMul(step, call.next_stride));
    for (int i = 0; i < kLines; ++i) prefetch_line(builder, byte_at(first, number(i * kCacheLine)), 2);
  }

  void multiply_whole(llvm::Value* whole) const {
    emit_loop(builder, number(0), whole, kMatrixRows, [&](llvm::Value* step) {
      llvm::Value* b = byte_at(call.b, times(step, shape.step_bytes()));
      if (prefetch) prefetch_lines(step, b);
      multiply_steps(step, b);
    });
  }

  // The last `rest` steps of B become 16, the others zeros.
  void multiply_rest(llvm::Value* first, llvm::Value* rest) const {
    llvm::Value* copy =
        stack_array(builder, builder.getInt8Ty(), kMatrixRows * shape.step_bytes(), kCacheLine);
    llvm::Type* vector = stored_type(builder, DType::kI32, kMatrixWords);
    llvm::Value* from = byte_at(call.b, times(first, shape.step_bytes()));
    const auto fill = [&](llvm::Value* begin, llvm::Value* end, bool copies) {
      emit_loop(builder, times(begin, shape.vectors), times(end, shape.vectors), 1, [&](llvm::Value* i) {
        llvm::Value* offset = times(i, kRowBytes);
        llvm::Value* words = llvm::Constant::getNullValue(vector);
        if (copies) words = builder.CreateAlignedLoad(vector, byte_at(from, offset), llvm::Align(kCacheLine));
        builder.CreateAlignedStore(words, byte_at(copy, offset), llvm::Align(kCacheLine));
      });
    };
    fill(number(0), rest, true);
    fill(rest, number(kMatrixRows), false);
    multiply_steps(first, copy);
  }

  void store() const {
    const int64_t row_bytes = shape.vectors * kRowBytes;
    for (int row = 0; row < row_registers(); ++row) {
      for (int v = 0; v < shape.vectors; ++v) {
        llvm::Value* place = byte_at(call.sums, number(row * kMatrixRows * row_bytes + v * kRowBytes));
        builder.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64, {},
                                {register_number(sums_at(row, v)), place, number(row_bytes)});
      }
    }
  }

  void emit() const {
    for (int i = 0; i < row_registers() * shape.vectors; ++i)
      builder.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {register_number(i)});
    llvm::Value* steps = builder.CreateNSWMul(call.segments, call.count);
    llvm::Value* rest = builder.CreateURem(steps, number(kMatrixRows));
    llvm::Value* whole = builder.CreateNSWSub(steps, rest);
    multiply_whole(whole);
    emit_if(builder, builder.CreateICmpSGT(rest, number(0)), [&] { multiply_rest(whole, rest); });
    store();
  }
};

}  // namespace

// All registers have all rows and words. The format is that of LDTILECFG: a palette, and for each register
// the bytes of a row and the number of rows.
void begin_matrices(Builder& builder, const TileShape& tile) {
  if (!tile.by_matrices) return;
  constexpr size_t kBytes = 64, kRowSizes = 16, kRowCounts = 48;
  std::array<uint8_t, kBytes> configuration{1};
  for (size_t i = 0; i < kRegisters; ++i) {
    configuration[kRowSizes + 2 * i] = kRowBytes;
    configuration[kRowCounts + i] = kMatrixRows;
  }
  llvm::Value* place = stack_array(builder, builder.getInt8Ty(), kBytes, kCacheLine);
  llvm::Constant* bytes = llvm::ConstantDataVector::get(builder.getContext(), configuration);
  builder.CreateAlignedStore(bytes, place, llvm::Align(kCacheLine));
  builder.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {place});
}

void end_matrices(Builder& builder, const TileShape& tile) {
  if (tile.by_matrices) builder.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
}

void pack_words(Scaffold& scaffold, llvm::Value* from, llvm::Value* to, llvm::Value* words) {
  Builder& builder = scaffold.builder;
  const auto copy = [&](llvm::Value* at, llvm::Value* mask) {
    llvm::Value* offset = scaffold.times(at, kWordBytes);
    llvm::Value* some = load_lanes(builder, DType::kI32, scaffold.byte_at(from, offset), kMatrixWords, mask);
    store_lanes(builder, DType::kI32, some, scaffold.byte_at(to, offset));
  };
  const auto copy_some = [&](llvm::Value* at) {
    copy(at, first_lanes(builder, builder.CreateNSWSub(words, at), kMatrixWords));
  };
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(words);
  if (known == nullptr) return emit_loop(builder, scaffold.number(0), words, kMatrixWords, copy_some);
  const int64_t whole = known->getSExtValue() / kMatrixWords * kMatrixWords;
  const auto copy_whole = [&](llvm::Value* at) { copy(at, nullptr); };
  if (whole > kFewWords)
    emit_loop(builder, scaffold.number(0), scaffold.number(whole), kMatrixWords, copy_whole);
  else
    for (int64_t at = 0; at < whole; at += kMatrixWords) copy_whole(scaffold.number(at));
  if (whole < known->getSExtValue()) copy_some(scaffold.number(whole));
}

MatrixRows choose_rows(Scaffold& scaffold, const MatrixRows& in_memory, const MatrixRows& packed,
                       llvm::Value* rows, llvm::Value* words, const std::function<void()>& pack) {
  Builder& builder = scaffold.builder;
  llvm::Value* some = builder.CreateOr(builder.CreateURem(rows, scaffold.number(kMatrixRows)),
                                       builder.CreateURem(words, scaffold.number(kMatrixWords)));
  llvm::Value* packs = builder.CreateICmpNE(some, scaffold.number(0));
  emit_if(builder, packs, pack);
  return {builder.CreateSelect(packs, packed.start, in_memory.start),
          builder.CreateSelect(packs, packed.stride, in_memory.stride)};
}

MatrixRows choose_rows(Scaffold& scaffold, const MatrixRows& in_memory, const MatrixRows& packed,
                       llvm::Value* rows, llvm::Value* words) {
  Builder& builder = scaffold.builder;
  const auto row_of = [&](const MatrixRows& all, llvm::Value* row) {
    return scaffold.byte_at(all.start, builder.CreateNSWMul(row, all.stride));
  };
  return choose_rows(scaffold, in_memory, packed, rows, words, [&] {
    emit_loop(builder, scaffold.number(0), rows, 1, [&](llvm::Value* row) {
      pack_words(scaffold, row_of(in_memory, row), row_of(packed, row), words);
    });
  });
}

void emit_matrix_tile(Builder& builder, const TileShape& shape, const TileCall& call, bool prefetch) {
  MatrixTile{builder, shape, call, prefetch}.emit();
}

}  // namespace ingot::core::cpu
