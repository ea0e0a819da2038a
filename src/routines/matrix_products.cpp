// SPDX-License-Identifier: Apache-2.0
// for depths, by kDepthOfBlock
//   for columns, by kColumnsOfBlock               copies of b: L3, unless its columns are contiguous
//     for rows, by kRowsOfBlock                   copies of a: L2
//       for NR columns                     b: L1
//         for MR rows                      microkernel: MR x NR accumulators in registers
#include "routines/matrix_products.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "routines/unrolled.h"
#include "support/target_attribute.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // of functions that take vectors: all of them are inlined
#endif

namespace ingot::core::routines {
namespace {

constexpr int64_t kDepthOfBlock = 256, kRowsOfBlock = 240, kColumnsOfBlock = 960;  // multiples of MR and NR
constexpr int kVectorsOfTile = 3;                                                  // of rows in a microkernel

int64_t rounded_up(int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }

// For panels of both factors, and for the results of microkernels at the edges of c.
struct Memory {
  double *a, *b, *edge;
};

// Contiguous columns are read where they are.
INGOT_INLINE bool is_packed(const MatrixFactor& b, int64_t columns, int64_t panel) {
  return b.row != 1 || columns < panel;
}

// Panels of `Width` lines of a factor, all depths of one after the other; lines past the last one are zeros.
template <int Width>
INGOT_INLINE void pack(const MatrixFactor& from, int64_t lines, int64_t depth, double* to) {
  for (int64_t first = 0; first < lines; first += Width, to += Width * depth) {
    const double* source = from.data + first * from.row;
    const int64_t count = std::min<int64_t>(Width, lines - first);
    if (from.row == 1 && count == Width) {
      for (int64_t k = 0; k < depth; ++k)
        std::memcpy(to + k * Width, source + k * from.column, Width * sizeof(double));
      continue;
    }
    if (count < Width) std::fill_n(to, Width * depth, 0.0);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t k = 0; k < depth; ++k) to[k * Width + i] = source[i * from.row + k * from.column];
    }
  }
}

// Packed: element (k, j) of b is at k * Columns + j, otherwise at j * distance + k.
template <size_t Bytes, int Columns, bool Packed>
INGOT_INLINE void add_tile(const double* a, const double* b, int64_t distance, const MatrixProduct& block,
                           double* c, int64_t stride) {
  typedef double Lanes __attribute__((vector_size(Bytes)));
  constexpr int kLanes = Bytes / sizeof(double);
  Lanes total[Columns][kVectorsOfTile] = {};
  for (int64_t k = 0; k < block.depth; ++k, a += kVectorsOfTile * kLanes, b += Packed ? Columns : 1) {
    Lanes rows[kVectorsOfTile];
    std::memcpy(rows, a, sizeof(rows));
    unrolled<Columns>([&](auto column) __attribute__((always_inline)) {
      unrolled<kVectorsOfTile>([&](auto vector) __attribute__((always_inline)) {
        total[column][vector] += rows[vector] * b[Packed ? column : column * distance];
      });
    });
  }
  unrolled<Columns>([&](auto column) __attribute__((always_inline)) {
    unrolled<kVectorsOfTile>([&](auto vector) __attribute__((always_inline)) {
      Lanes sum;
      double* const to = c + column * stride + vector * kLanes;
      std::memcpy(&sum, to, Bytes);
      sum += block.alpha * total[column][vector];
      std::memcpy(to, &sum, Bytes);
    });
  });
}

// All packed rows by NR columns.
template <size_t Bytes, int Columns, bool Packed>
INGOT_INLINE void add_panel(const Memory& memory, const double* b, int64_t distance,
                            const MatrixProduct& panel) {
  constexpr int kTile = kVectorsOfTile * static_cast<int>(Bytes / sizeof(double));
  for (int64_t row = 0; row < panel.rows; row += kTile) {
    const int64_t rows = std::min<int64_t>(kTile, panel.rows - row);
    const double* a = memory.a + row * panel.depth;
    double* c = panel.c + row * panel.row;
    if (rows == kTile && panel.columns == Columns && panel.row == 1) {
      add_tile<Bytes, Columns, Packed>(a, b, distance, panel, c, panel.column);
      continue;
    }
    std::fill_n(memory.edge, kTile * Columns, 0.0);
    add_tile<Bytes, Columns, Packed>(a, b, distance, panel, memory.edge, kTile);
    for (int64_t j = 0; j < panel.columns; ++j) {
      for (int64_t i = 0; i < rows; ++i) c[j * panel.column + i * panel.row] += memory.edge[j * kTile + i];
    }
  }
}

template <size_t Bytes, int Columns>
INGOT_INLINE void add_block(const Memory& memory, const MatrixProduct& block) {
  for (int64_t column = 0; column < block.columns; column += Columns) {
    MatrixProduct panel = block;
    panel.columns = std::min<int64_t>(Columns, block.columns - column);
    panel.c = block.c + column * block.column;
    if (is_packed(block.b, panel.columns, Columns))
      add_panel<Bytes, Columns, true>(memory, memory.b + column * block.depth, 0, panel);
    else
      add_panel<Bytes, Columns, false>(memory, block.b.data + column * block.b.column, block.b.column, panel);
  }
}

template <int Columns>
INGOT_INLINE void pack_columns(const MatrixProduct& block, double* to) {
  const int64_t whole = block.b.row == 1 ? block.columns / Columns * Columns : 0;
  const MatrixFactor lines{block.b.data + whole * block.b.column, block.b.column, block.b.row};
  pack<Columns>(lines, block.columns - whole, block.depth, to + whole * block.depth);
}

template <size_t Bytes, int Columns>
INGOT_INLINE void add(const MatrixProduct& product, const Memory& memory) {
  constexpr int kTile = kVectorsOfTile * static_cast<int>(Bytes / sizeof(double));
  MatrixProduct block = product;
  for (int64_t k = 0; k < product.depth; k += kDepthOfBlock) {
    block.depth = std::min(kDepthOfBlock, product.depth - k);
    for (int64_t column = 0; column < product.columns; column += kColumnsOfBlock) {
      block.columns = std::min(kColumnsOfBlock, product.columns - column);
      block.b.data = product.b.data + k * product.b.row + column * product.b.column;
      pack_columns<Columns>(block, memory.b);
      for (int64_t row = 0; row < product.rows; row += kRowsOfBlock) {
        block.rows = std::min(kRowsOfBlock, product.rows - row);
        block.c = product.c + row * product.row + column * product.column;
        const MatrixFactor lines{product.a.data + row * product.a.row + k * product.a.column, product.a.row,
                                 product.a.column};
        pack<kTile>(lines, block.rows, block.depth, memory.a);
        add_block<Bytes, Columns>(memory, block);
      }
    }
  }
}

void add_any(const MatrixProduct& product, const Memory& memory) { add<16, 4>(product, memory); }
#ifdef INGOT_TARGET
INGOT_TARGET("arch=x86-64-v3")
void add_v3(const MatrixProduct& product, const Memory& memory) { add<32, 4>(product, memory); }
INGOT_TARGET("arch=x86-64-v4")
void add_v4(const MatrixProduct& product, const Memory& memory) { add<64, 8>(product, memory); }
#endif

void add_best(const MatrixProduct& product, const Memory& memory) {
#ifdef INGOT_TARGET
  if (__builtin_cpu_supports("x86-64-v4")) return add_v4(product, memory);
  if (__builtin_cpu_supports("x86-64-v3")) return add_v3(product, memory);
#endif
  add_any(product, memory);
}

}  // namespace

void add_matrix_product(const MatrixProduct& product) {
  constexpr int64_t kLargestTile = 24, kLargestColumns = 8, kOnStack = 4096, kLine = 64 / sizeof(double);
  const int64_t depth = std::min(product.depth, kDepthOfBlock),
                a_size = rounded_up(std::min(product.rows, kRowsOfBlock), kLargestTile) * depth,
                b_size = rounded_up(std::min(product.columns, kColumnsOfBlock), kLargestColumns) * depth,
                size = a_size + b_size + kLargestTile * kLargestColumns + kLine;
  std::array<double, kOnStack> on_stack;  // NOLINT: written before it is read
  std::unique_ptr<double[]> allocated;    // NOLINT: without zeros
  double* first = on_stack.data();
  if (size > kOnStack) {
    allocated.reset(new double[static_cast<size_t>(size)]);
    first = allocated.get();
  }
  while (reinterpret_cast<uintptr_t>(first) % (kLine * sizeof(double)) != 0) ++first;
  double* const edge = first + a_size + b_size;
  add_best(product, {first, first + a_size, edge});
}

// By products of the parts, of which each adds to one part of c if alpha is real.
void add_matrix_product(const ProductOf<std::complex<double>>& product) {
  using Factor = FactorOf<std::complex<double>>;
  const auto part_of = [](const Factor& factor, int part) {
    return MatrixFactor{reinterpret_cast<const double*>(factor.data) + part, 2 * factor.row,
                        2 * factor.column};
  };
  const auto unit_of = [](const Factor& factor, int part) {
    return part == 0 ? std::complex<double>(1) : std::complex<double>(0, factor.is_conjugate ? -1 : 1);
  };
  auto* const c = reinterpret_cast<double*>(product.c);
  for (const int i : {0, 1}) {
    for (const int j : {0, 1}) {
      const std::complex<double> alpha = product.alpha * unit_of(product.a, i) * unit_of(product.b, j);
      const auto add_to = [&](double* part, double scale) {
        if (scale == 0) return;
        add_matrix_product({product.rows, product.columns, product.depth, scale, part_of(product.a, i),
                            part_of(product.b, j), part, 2 * product.row, 2 * product.column});
      };
      add_to(c, alpha.real());
      add_to(c + 1, alpha.imag());
    }
  }
}

}  // namespace ingot::core::routines
