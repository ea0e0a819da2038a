// SPDX-License-Identifier: Apache-2.0
// What a contraction has to do with norms around it (split_norms): it reads the moments of rows that other
// kernels kept, and keeps those of its own result.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/steps/members.h"

namespace ingot::core::cuda {

// Mean and scale of the rows of one tensor.
struct RowStatistics {
  const Value* moments;
  int64_t parts = 0;  // of a row
  double epsilon = 0;
  bool centered = true;
};

// A value of the region that is one of these.
struct StatisticValue {
  const Value* value;
  size_t source;  // which of the statistics
  bool is_scale;
};

// What epilogues read of them: a buffer that stands for one of these values.
struct StatisticBuffer {
  int buffer;
  size_t source;
  bool is_scale;
};

struct RowNorms {
  std::vector<RowStatistics> statistics;
  std::vector<StatisticBuffer> buffers;
  std::optional<size_t> normalized;  // the statistics of the contraction's own rows (normalized_linear)
  bool keeps_moments = false;
  std::vector<StatisticValue> kept;  // that the kernel stores, too

  bool is_empty() const { return statistics.empty() && !keeps_moments; }
  const StatisticBuffer* find(size_t buffer) const;
  std::optional<size_t> centered() const;  // `normalized`, if means are subtracted
};

// A contraction's region, cut into what an epilogue can compute and what the kernel does besides.
struct NormedMembers {
  Members members;  // without the nodes below
  std::vector<RowStatistics> statistics;
  std::vector<StatisticValue> values;
  const Value* moments = nullptr;    // of the result, which the region stores too
  std::vector<StatisticValue> kept;  // of `values`, likewise
};
NormedMembers split_members(const Members& members);

// The contraction's operands without the mean and scale of rows, which its kernel makes.
std::span<Value* const> given_operands(const Node& contraction);

// `buffers`: of the epilogue, the first of which holds the sums.
RowNorms row_norms(const NormedMembers& split, const Node& contraction,
                   std::span<const Value* const> buffers);

// What kernels with these need behind the body of their form. `offset`: of statistics_bytes() in shared
// memory.
std::string row_norm_functions(const RowNorms& norms, int64_t offset);
int64_t statistics_bytes(const RowNorms& norms, int rows);

}  // namespace ingot::core::cuda
