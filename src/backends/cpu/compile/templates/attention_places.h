// SPDX-License-Identifier: Apache-2.0
// Where blocks of attention (attention_blocks.cpp) keep what they compute.
#pragma once

#include <utility>

#include "backends/cpu/compile/templates/attention_problem.h"
#include "backends/cpu/compile/templates/tile.h"

namespace ingot::core::cpu {

// Keys per block: with NR = 48, the scores of a block take 24 KiB, within a first-level cache of 32 or 48
// KiB. Also the KC of the product with values.
inline constexpr int64_t kAttentionBlockKeys = 128;

// Scratch memory per thread, as byte offsets.
struct AttentionPlaces {
  AttentionPlaces(const AttentionProblem& problem, const TileShape& tile, int lanes) {
    int64_t queries = tile.columns();
    const auto bytes_of_floats = [](int64_t count) {
      return round_up(count * static_cast<int64_t>(sizeof(float)), 64);
    };
    auto next = [this](int64_t bytes) { return std::exchange(end, end + bytes); };
    query = next(bytes_of_floats(round_up(problem.width, lanes) * queries));
    scores = next(bytes_of_floats((kAttentionBlockKeys + tile.rows) * queries));
    values = next(tile.group() == 1
                      ? 0
                      : bytes_of_floats(kAttentionBlockKeys / 2 * round_up(problem.value_width, lanes)));
    mask = next(problem.mask ? bytes_of_floats(round_up(kAttentionBlockKeys, lanes) * queries) : 0);
    sums = next(bytes_of_floats(round_up(problem.value_width, lanes) * queries));
    part = next(bytes_of_floats(tile.rows * queries));
    largest = next(bytes_of_floats(queries));
    total = next(bytes_of_floats(queries));
    factor = next(bytes_of_floats(queries));
    table = next(round_up(tile.rows * static_cast<int64_t>(sizeof(void*)), 64));
    rows = next(bytes_of_floats(round_up(problem.value_width, lanes) * queries));
  }

  int64_t end = 0;
  int64_t query;                   // [width][query], scaled
  int64_t scores;                  // [key][query]; then exponentials, maybe as pairs [key / 2][query]
  int64_t values;                  // pairs [key / 2][value column]
  int64_t mask;                    // [key][query], added to scores
  int64_t sums;                    // [value column][query]
  int64_t part;                    // one tile of accumulators
  int64_t largest, total, factor;  // [query]: of the softmax so far; the factor of earlier sums
  int64_t table;                   // row pointers of a tile of keys
  int64_t rows;                    // [query][value column]: for the epilogue
};

}  // namespace ingot::core::cpu
