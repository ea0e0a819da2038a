// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/row_statistics.h"

#include <algorithm>

#include <fmt/core.h>

#include "ops/normalization.h"
#include "ops/row_moments.h"

namespace ingot::core::cuda {
namespace {

size_t source_of(const Node& node, std::vector<RowStatistics>& statistics) {
  const Value* moments = node.operands[0];
  const auto found = std::ranges::find(statistics, moments, &RowStatistics::moments);
  if (found != statistics.end()) return static_cast<size_t>(found - statistics.begin());
  const Shape& shape = moments->type.shape;
  statistics.push_back({.moments = moments, .parts = *shape[shape.size() - 2].constant()});
  return statistics.size() - 1;
}

// Neighbouring lanes share a row, each with every lanes-th of its parts.
constexpr std::string_view kStatistics = R"cuda(
struct __align__(8) Pair { f32 first, second; };  // moments of a part: mean, squares; of a row: mean, scale
constexpr int kPartElements = 32;

// Spare threads add moments up while others multiply, else those that multiply do it behind the products.
constexpr int kFinished = kRows / kSplits, kAdders = kSpare >= kFinished ? kSpare : kMultipliers, kFirstAdder = kSpare >= kFinished ? kThreads - kSpare : 0;
constexpr int kLanesOfRow = kAdders / kFinished < 32 ? kAdders / kFinished : 32;  // of a block
static_assert(kAdders >= kFinished, "each row has a lane");
template <int parts> struct OwnMoments { Pair each[(parts + kLanesOfRow - 1) / kLanesOfRow]; };

DEVICE Pair* statistics_in(char* shared, int source) { return (Pair*)(shared + kStatisticsOffset) + source * kRows; }

DEVICE int adder() { return (int)threadIdx.x - kFirstAdder; }  // by whole warps
DEVICE bool is_adder() { return adder() >= 0 && adder() < kAdders; }

// They are on their way while products are computed.
template <int parts> DEVICE void load_moments(OwnMoments<parts>& own, const f32* moments, int share, idx first_row, const Operands& x) {
  if (!is_adder()) return;
  const int lane = adder() % kLanesOfRow, row = least<int>(adder() / kLanesOfRow, kFinished - 1);
  const Pair* const from = (const Pair*)moments + least<idx>(first_row + share * kFinished + row, x.rows - 1) * parts;
  #pragma unroll
  for (int i = 0; i < sizeof(own) / sizeof(Pair); ++i) own.each[i] = from[least(i * kLanesOfRow + lane, parts - 1)];
}
// `kept`: called with the row in the tile, its mean and its scale.
template <int parts, bool centered, class Kept> DEVICE void keep_statistics(const OwnMoments<parts>& own, char* shared, int source, int share, f32 epsilon, const Kept& kept) {
  if (!is_adder()) return;
  const int lane = adder() % kLanesOfRow, row = adder() / kLanesOfRow;
  f32 mean = 0, squares = 0;
  if (centered) {
    #pragma unroll
    for (int i = 0; i < sizeof(own) / sizeof(Pair); ++i) mean += i * kLanesOfRow + lane < parts ? own.each[i].first : 0;
    #pragma unroll
    for (int mask = kLanesOfRow / 2; mask > 0; mask /= 2) mean += __shfl_xor_sync(~0u, mean, mask);
    mean /= parts;
  }
  #pragma unroll
  for (int i = 0; i < sizeof(own) / sizeof(Pair); ++i) {
    const f32 distance = own.each[i].first - mean;
    squares += i * kLanesOfRow + lane < parts ? fmaf(kPartElements * distance, distance, own.each[i].second) : 0;
  }
  #pragma unroll
  for (int mask = kLanesOfRow / 2; mask > 0; mask /= 2) squares += __shfl_xor_sync(~0u, squares, mask);
  if (lane > 0 || row >= kFinished) return;
  const Pair statistics = {mean, rsqrtf(squares / (parts * kPartElements) + epsilon)};
  statistics_in(shared, source)[share * kFinished + row] = statistics;
  kept(share * kFinished + row, statistics);
}
)cuda";

// If a mean is far from zero, the difference of sums would have few digits: products of differences replace
// the sums, and 0 the mean.
constexpr std::string_view kCenteringOfRows = R"cuda(
DEVICE bool is_far(const Pair& row) { return fabsf(row.first) * row.second > 256; }  // deviations
DEVICE f32 centered_sum(f32 mean, idx row, idx column, const Operands& x) {
  f32 sum = 0;
  #pragma unroll 1
  for (idx d = 0; d < x.depth; ++d) sum = fmaf(load_element(x.a + row * x.depth + d) - mean, load_element(b_place(x, 0, column, d)), sum);
  return sum;
}

// All threads wait for each other.
DEVICE void center_far_rows_of_tile(char* shared, int source, int share, idx first_row, idx first_column, const Operands& x) {
  Pair* const rows = statistics_in(shared, source) + share * kFinished;
  if (kSplits > 1) __syncthreads();  // the statistics are there
  if (!__syncthreads_or(threadIdx.x < kFinished && is_far(rows[threadIdx.x]))) return;
  #pragma unroll 1
  for (int i = threadIdx.x; i < kFinished * kColumns; i += kThreads) {
    const int row = i / kColumns;
    const idx at = least<idx>(first_row + share * kFinished + row, x.rows - 1), column = least<idx>(first_column + i % kColumns, x.columns - 1);
    if (is_far(rows[row])) keep_sum(shared, share * kFinished + row, i % kColumns, centered_sum(rows[row].first, at, column, x));
  }
  __syncthreads();
  if (threadIdx.x < kFinished && is_far(rows[threadIdx.x])) rows[threadIdx.x].first = 0;
  __syncthreads();
}
)cuda";

// Four neighbouring lanes have the 32 elements of a part. Their distances are from what is stored, which is
// rounded: rows of equal elements have none.
constexpr std::string_view kKeptMoments = R"cuda(
template <bool whole_warps> DEVICE void keep_moments(f32* moments, const f32 (&values)[8], idx row, idx column, bool exists, const Operands& x) {
  const u32 lanes = whole_warps ? ~0u : 0xfu << (threadIdx.x % 32 & ~3);  // a mask that varies takes fifty instructions
  Packed packed;
  #pragma unroll
  for (int k = 0; k < 4; ++k) packed.pairs[k] = kBf16 ? pack_bf16(values[2 * k], values[2 * k + 1]) : pack_f16(values[2 * k], values[2 * k + 1]);
  f32 stored[8], mean = 0, squares = 0;
  #pragma unroll
  for (int k = 0; k < 8; ++k) mean += stored[k] = number_of<kBf16>(packed, k);
  mean += __shfl_xor_sync(lanes, mean, 1);
  mean += __shfl_xor_sync(lanes, mean, 2);
  mean /= 32;
  #pragma unroll
  for (int k = 0; k < 8; ++k) squares = fmaf(stored[k] - mean, stored[k] - mean, squares);
  squares += __shfl_xor_sync(lanes, squares, 1);
  squares += __shfl_xor_sync(lanes, squares, 2);
  if (exists && threadIdx.x % 4 == 0) *(u64*)(moments + (row * (x.columns / 32) + column / 32) * 2) = (u64)__float_as_uint(mean) | (u64)__float_as_uint(squares) << 32;
}
)cuda";

}  // namespace

NormedMembers split_members(const Members& all) {
  NormedMembers split;
  split.members.outer = all.outer;
  for (const Node* node : all.nodes) {
    if (node->op == &ops::row_moments) {
      split.moments = node->results[0];
    } else if (ops::is_row_statistic(*node)) {
      const size_t source = source_of(*node, split.statistics);
      const bool is_scale = node->op == &ops::row_scale;
      if (is_scale) {
        const auto attributes = node->attributes<ops::RowScale>();
        split.statistics[source].epsilon = attributes.epsilon;
        split.statistics[source].centered = attributes.centered;
      }
      split.values.push_back({node->results[0], source, is_scale});
    } else {
      split.members.nodes.push_back(node);
    }
  }
  for (const Value* output : all.outputs) {
    const auto statistic = std::ranges::find(split.values, output, &StatisticValue::value);
    if (statistic != split.values.end())
      split.kept.push_back(*statistic);
    else if (output != split.moments)
      split.members.outputs.push_back(output);
  }
  return split;
}

std::span<Value* const> given_operands(const Node& contraction) {
  const std::span<Value* const> operands(contraction.operands);
  const bool has_rows = contraction.op == &ops::normalized_linear && operands.size() > ops::kNormalizedMean;
  return has_rows ? operands.first(ops::kNormalizedMean) : operands;
}

RowNorms row_norms(const NormedMembers& split, const Node& contraction,
                   std::span<const Value* const> buffers) {
  RowNorms norms{
      .statistics = split.statistics, .keeps_moments = split.moments != nullptr, .kept = split.kept};
  const auto find = [&](const Value* value) {
    const auto found = std::ranges::find(split.values, value, &StatisticValue::value);
    return found == split.values.end() ? nullptr : &*found;
  };
  for (size_t i = 1; i < buffers.size(); ++i) {
    if (const StatisticValue* found = find(buffers[i]))
      norms.buffers.push_back({static_cast<int>(i), found->source, found->is_scale});
  }
  if (contraction.op == &ops::normalized_linear && contraction.has_operand(ops::kNormalizedScale)) {
    if (const StatisticValue* found = find(contraction.operands[ops::kNormalizedScale]))
      norms.normalized = found->source;
  }
  return norms;
}

const StatisticBuffer* RowNorms::find(size_t buffer) const {
  const auto found = std::ranges::find(buffers, static_cast<int>(buffer), &StatisticBuffer::buffer);
  return found == buffers.end() ? nullptr : &*found;
}

std::optional<size_t> RowNorms::centered() const {
  return normalized && statistics[*normalized].centered ? normalized : std::nullopt;
}

std::string row_norm_functions(const RowNorms& norms, int64_t offset) {
  std::string text;
  if (!norms.statistics.empty())
    text = fmt::format("constexpr int kStatisticsOffset = {};\n{}", offset, kStatistics);
  if (norms.centered()) text += kCenteringOfRows;
  if (norms.keeps_moments) text += kKeptMoments;
  return text;
}

int64_t statistics_bytes(const RowNorms& norms, int rows) {
  constexpr int64_t kPair = 8;
  return static_cast<int64_t>(norms.statistics.size()) * kPair * rows;
}

}  // namespace ingot::core::cuda
