// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/depthwise_bytes.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <fmt/format.h>

#include <array>
#include <optional>

#include "backends/cpu/compile/llvm/elements.h"

namespace ingot::core::cpu {
namespace {

constexpr int64_t kQuad = 4;        // rows of the window, and registers of quads
constexpr int64_t kPart = 16;       // channels that are interleaved with each other
constexpr int64_t kBytePixels = 4;  // with four registers of sums each
constexpr int64_t kMostTaps = 128;  // of a window, for each of which code is emitted

// Channels in a register of bytes: few channels fill the shorter one, which takes as long.
int64_t byte_lanes(int64_t channels) {
  constexpr int64_t kShort = 32, kLong = 64;
  return ceil_divide(channels, kShort) > ceil_divide(channels, kLong) ? kLong : kShort;
}

using Quads = std::array<llvm::Value*, kQuad>;

class ByteKernel final : public DepthwiseKernel {
 public:
  using DepthwiseKernel::DepthwiseKernel;

 private:
  int lanes() const { return static_cast<int>(problem_.lanes); }
  int64_t row_quads() const { return ceil_divide(problem_.window_rows(), kQuad); }
  llvm::Type* sums_type() { return stored_type(builder_, DType::kI32, lanes() / static_cast<int>(kQuad)); }

  void emit_lanes(llvm::Value* channel, llvm::Value* /*column*/) override {
    llvm::Value* mask = existing_lanes(channel);
    std::vector<Quads> sums(static_cast<size_t>(problem_.pixels));
    for (Quads& of_pixel : sums) of_pixel.fill(llvm::Constant::getNullValue(sums_type()));
    for (int64_t rows = 0; rows < row_quads(); ++rows) {
      for (int64_t i = 0; i < problem_.reach(); ++i) add_element(channel, mask, rows, i, sums);
    }
    for (int64_t pixel = 0; pixel < problem_.pixels; ++pixel) store(pixel, sums[static_cast<size_t>(pixel)]);
  }

  void add_element(llvm::Value* channel, llvm::Value* mask, int64_t rows, int64_t i,
                   std::vector<Quads>& sums) {
    std::optional<Quads> quads;
    for (int64_t pixel = 0; pixel < problem_.pixels; ++pixel) {
      const int64_t tap = problem_.tap_of(i, pixel);
      if (tap < 0) continue;
      if (!quads) quads = load_quads(channel, mask, rows, i);
      for (int64_t v = 0; v < kQuad; ++v) {
        llvm::Value*& sum = sums[static_cast<size_t>(pixel)][static_cast<size_t>(v)];
        sum = multiply_add((*quads)[static_cast<size_t>(v)], load_weights(channel, rows, tap, v), sum);
      }
    }
  }

  llvm::Value* multiply_add(llvm::Value* numbers, llvm::Value* weights, llvm::Value* sum) {
    return builder_.CreateIntrinsic(problem_.lanes == 64 ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                                                         : llvm::Intrinsic::x86_avx512_vpdpbusd_256,
                                    {}, {sum, numbers, weights});
  }

  // Rows that the window does not have are zero, as their weights are.
  llvm::Value* load_row(llvm::Value* channel, llvm::Value* mask, int64_t row, int64_t i) {
    if (row >= problem_.window_rows())
      return llvm::Constant::getNullValue(stored_type(builder_, DType::kU8, lanes()));
    return load_lanes(builder_, DType::kU8, image_at(number(row), i, channel), lanes(), mask);
  }

  // The first or the second halves of all parts, elements of `a` before those of `b`.
  llvm::Value* interleaved(llvm::Value* a, llvm::Value* b, bool second) {
    const auto count = static_cast<int>(llvm::cast<llvm::FixedVectorType>(a->getType())->getNumElements());
    const int part = static_cast<int>(kPart) * count / lanes();
    std::vector<int> from;
    for (int first = 0; first < count; first += part) {
      for (int k = 0; k < part / 2; ++k) {
        const int place = first + (second ? part / 2 : 0) + k;
        from.insert(from.end(), {place, count + place});
      }
    }
    return builder_.CreateShuffleVector(a, b, from);
  }

  Quads load_quads(llvm::Value* channel, llvm::Value* mask, int64_t rows, int64_t i) {
    Quads bytes, quads;
    for (int64_t r = 0; r < kQuad; ++r)
      bytes[static_cast<size_t>(r)] = load_row(channel, mask, rows * kQuad + r, i);
    llvm::Type* pairs = stored_type(builder_, DType::kI16, lanes() / 2);
    for (const bool second : {false, true}) {
      llvm::Value* first_rows = builder_.CreateBitCast(interleaved(bytes[0], bytes[1], second), pairs);
      llvm::Value* last_rows = builder_.CreateBitCast(interleaved(bytes[2], bytes[3], second), pairs);
      const size_t v = second ? 2 : 0;
      quads[v] = builder_.CreateBitCast(interleaved(first_rows, last_rows, false), sums_type());
      quads[v + 1] = builder_.CreateBitCast(interleaved(first_rows, last_rows, true), sums_type());
    }
    return quads;
  }

  llvm::Value* load_weights(llvm::Value* channel, int64_t rows, int64_t tap, int64_t v) {
    const int64_t quads = row_quads() * problem_.width();  // of a channel
    llvm::Value* block = scaffold_.byte_at(scaffold_.buffers[1], scaffold_.times(channel, quads * kQuad));
    const int64_t offset = ((rows * problem_.width() + tap) * kQuad + v) * problem_.lanes;
    return builder_.CreateAlignedLoad(sums_type(), scaffold_.byte_at(block, number(offset)),
                                      llvm::Align(static_cast<uint64_t>(lanes())));
  }

  // Sums as they are counted: a register of sums has a quarter of each part's channels.
  void store(int64_t pixel, const Quads& sums) {
    const int parts = lanes() / static_cast<int>(kPart), quad = static_cast<int>(kQuad);
    const auto joined = [&](size_t v) {
      std::vector<int> all;
      for (int i = 0; i < 2 * parts * quad; ++i) all.push_back(i);
      return builder_.CreateShuffleVector(sums[v], sums[v + 1], all);
    };
    llvm::Value *first = joined(0), *last = joined(2);
    for (int part = 0; part < parts; ++part) {
      std::vector<int> from;
      for (int i = 0; i < static_cast<int>(kPart); ++i)
        from.push_back(i / quad * parts * quad + part * quad + i % quad);
      const int64_t place = pixel * problem_.block_channels + part * kPart;
      builder_.CreateAlignedStore(builder_.CreateShuffleVector(first, last, from),
                                  scaffold_.scratch(row_bytes(DType::kI32, place)), llvm::Align(64));
    }
  }
};

}  // namespace

Fit supports_depthwise_bytes(std::span<const TensorType> operands, CpuFeatures features) {
  if (!features.has(CpuFeature::kX86V4) || !features.has(CpuFeature::kAvx512Vnni))
    return {false, "depthwise convolutions of u8 need an instruction for sums of four products (VNNI)"};
  if (operands[0].rank() != 4 || operands[1].shape[1] != Dim(1))
    return {false, "depthwise convolutions of u8 have two spatial dims, and groups of one channel"};
  const Shape& window = operands[1].shape;
  if (*window[2].constant() * *window[3].constant() > kMostTaps)
    return {false,
            fmt::format("windows of depthwise convolutions of u8 have at most {} elements", kMostTaps)};
  return {};
}

Layout byte_window_layout(int64_t channels) {
  constexpr int kChannel = 0, kGroup = 1, kRow = 2, kColumn = 3;
  const int64_t lanes = byte_lanes(channels);
  return {{{kChannel, lanes},
           {kGroup},
           {kRow, kQuad},
           {kColumn},
           {kChannel, kQuad, kQuad},
           {kChannel, kPart, lanes / kPart},
           {kChannel, 1, kQuad},
           {kRow, 1, kQuad}}};
}

void plan_bytes(DepthwiseProblem& problem) {
  problem.pixels = kBytePixels;
  problem.lanes = problem.block_channels = byte_lanes(problem.channels());
  problem.sum = DType::kI32;
}

Image emit_depthwise_bytes(const DepthwiseProblem& problem, CpuFeatures features,
                           const std::vector<std::string>& symbols) {
  return ByteKernel(problem, features).emit(symbols);
}

}  // namespace ingot::core::cpu
