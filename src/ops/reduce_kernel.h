// SPDX-License-Identifier: Apache-2.0
// Kernels that reduce some dims of operand 0, in parallel over the others.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/samples.h"

namespace ingot::core::ops {

void require_axes(const Node& node, const std::vector<int64_t>& axes);  // in range, sorted, unique

class ReduceKernel {
 public:
  ReduceKernel(const Node& node, const std::vector<int64_t>& axes, bool keep_dims);

  StageLoops loops() { return builder.loops(row_); }  // over the reduced dims
  Expr load(const StageLoops& row) const;             // element of operand 0
  Expr reduce(std::string name, loops::Combine combine, const std::function<Expr(const Expr&)>& value);
  Expr count(DType dtype) const;  // elements per result
  const Shape& row() const { return row_; }

  KernelBuilder builder;
  Index result_index;

 private:
  bool is_reduced(size_t dim) const;
  std::vector<int64_t> axes_;
  Shape row_;
  Index place_;  // index of an element; zero in reduced dims
};

}  // namespace ingot::core::ops
