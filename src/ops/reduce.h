// SPDX-License-Identifier: Apache-2.0
// Kernels that reduce some dims of operand 0 and run in parallel over the others.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/attributes.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/samples.h"

namespace ingot::core::ops {

void require_axes(const Node& node, const std::vector<int64_t>& axes);  // in range, sorted, each once

class ReduceKernel {
 public:
  ReduceKernel(const Node& node, const std::vector<int64_t>& axes, bool keep_dims);

  StageLoops loops() { return builder.loops(row_); }  // over the reduced dims
  Expr load(const StageLoops& row) const;             // element of operand 0
  Expr reduce(std::string name, loops::Combine combine, const std::function<Expr(const Expr&)>& value);
  Expr count(DType dtype) const;  // how many elements each result is made of
  const Shape& row() const { return row_; }

  KernelBuilder builder;
  Index result_index;

 private:
  bool is_reduced(size_t dim) const;
  std::vector<int64_t> axes_;
  Shape row_;
  Index place_;  // of an element, zero where reduced
};

}  // namespace ingot::core::ops
