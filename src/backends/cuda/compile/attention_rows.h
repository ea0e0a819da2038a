// SPDX-License-Identifier: Apache-2.0
// Rows of attention's operands that its kernel computes, in shared memory: each block again, in place of a
// kernel that stores them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/compile/template_text.h"
#include "loops/kernel.h"

namespace ingot::core::cuda {

struct ComputedRows {
  size_t operand;
  int64_t at;           // their first element in shared memory
  int64_t rows, width;  // of a head of keys
  int64_t end() const { return at + rows * width; }
};

// `operands`: some of queries, new keys and new values, which are of one width.
std::vector<ComputedRows> computed_rows(std::span<const size_t> operands, int64_t queries, int64_t new_rows,
                                        int64_t width);
// kComputedElements; kQueriesAt, kNewKeysAt, kNewValuesAt: the first element, or -1.
std::string computed_constants(std::span<const ComputedRows> all);

// A loop over elements, `row` and `column`, by as many of the `threads` as are left for them: no thread has
// several where all of `all` are fewer than threads. Before its end the caller may name more.
void begin_computed_rows(const ComputedRows& rows, std::span<const ComputedRows> all, int threads,
                         TemplateText& out);
// ... which stores what `stage` of the prologue computes at `index` to `to`.
void end_computed_rows(const ComputedRows& rows, const loops::Kernel& prologue, const loops::Stage& stage,
                       const std::vector<Dim>& index, const IndexScope& scope, TemplateText& out);

}  // namespace ingot::core::cuda
