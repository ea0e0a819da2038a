// SPDX-License-Identifier: Apache-2.0
// The writer behind write_kernel: kernel_writer.cpp has what all kernels share and those whose groups take
// points one after another, flat_text.cpp those of independent elements.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "backends/cuda/compile/expression_text.h"
#include "backends/cuda/compile/kernel_text.h"

namespace ingot::core::cuda {

class KernelWriter {
 public:
  KernelWriter(loops::Kernel kernel, const std::string& entry, KernelOptions options);
  KernelText write();

 private:
  using Loop = loops::Loop;
  using Stage = loops::Stage;

  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...);
  }

  void write_signature();
  // Variables of `loops` from the linear index of a point; the innermost varies fastest.
  void decode(const std::vector<Loop>& loops, const std::string& number, IndexScope& scope);
  // Symbols that are read from data; the status reports one that is out of range. Those of `inner` reductions
  // are bound in the reduction.
  void bind(const Stage& stage, bool inner, IndexScope& scope, ExpressionWriter& writer);
  void finish(const Stage& stage, size_t number, const std::string& value, const IndexScope& scope);
  // "if (...) " where the offset depends on symbols that were read from data.
  std::string condition_of(const Dim& offset) const;
  // Threads take the points of all stages in turn: stages are computed side by side.
  void write_flat();
  void write_flat_stage(size_t k, const std::string& own);
  // The innermost variable of `scope` numbers groups of neighbours.
  void write_neighbours(size_t k, int wide, IndexScope& scope, ExpressionWriter& writer);
  // for each point of the parallel loops that this group has: each stage in turn
  void write_grouped();
  void declare_rows(int groups);
  void write_stage(size_t k, const IndexScope& outer);
  // Whether the lanes of a group share one reduction: if there is nothing else to do, or there are few
  // points.
  bool is_shared_reduction(const Stage& stage) const;
  // Opens the loop over points `first`, `first` + `step`, ... of the stage's loops, or a block if it has
  // none.
  void open_points(size_t k, std::string_view first, int step, IndexScope& scope);
  // Keeps the value of the point and closes its loop. `one_writes`: all lanes have the value.
  void close_points(size_t k, const std::string& value, bool one_writes, const IndexScope& scope);
  // Lanes take points of the stage's loops in turn; each computes its own, reduction included.
  void write_points(size_t k, const IndexScope& outer);
  // A variable that holds the reduction over every `step`-th point from `first` on. Long sums consist of
  // sums of kPart points, so that rounding errors do not grow with their length.
  std::string reduce(const Stage& stage, const IndexScope& outer, ExpressionWriter& writer,
                     std::string_view first, int step);
  // One point of the stage's loops after another; the lanes share its reduction.
  void write_shared_reduction(size_t k, const IndexScope& outer);
  // Points of the outer loops one after another; along the last loop, 32 points at a time.
  void write_scan(size_t k, const IndexScope& outer);

  const loops::Kernel kernel_;
  const KernelOptions options_;
  KernelText result_;
  IndexScope scope_;  // shape symbols
  std::vector<LocalAccess> locals_;
  std::map<std::string, std::string> guards_;  // symbols read from data -> whether they are in range
  std::string point_;                          // the linear index of the point of a stage's loops
  std::string text_;
  int next_ = 0;
};

}  // namespace ingot::core::cuda
