// SPDX-License-Identifier: Apache-2.0
// Builds the Loop IR of one node. Loop variables are i0, i1 ... (parallel) and j0, j1 ... (stages); symbols
// that a binding reads from data are k0, k1 ...; shape symbols must not have such names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "loops/kernel.h"
#include "ops/expression.h"

namespace ingot::core::ops {

using Index = std::vector<Dim>;

// Loops of one stage and the index that they run over.
struct StageLoops {
  std::vector<loops::Loop> loops;
  Index index;
};

class KernelBuilder {
 public:
  // Buffers: the operands that are present, in order, then the results (read and write if the op works in
  // place).
  explicit KernelBuilder(const Node& node);

  Index parallel(const Shape& extents);  // appends parallel loops
  StageLoops loops(const Shape& extents);

  bool has(size_t operand) const { return operand < buffers_.size() && buffers_[operand] >= 0; }
  Expr load(size_t operand, const Index& index) const;
  // Operand `operand` at `index` of a shape that it broadcasts to, aligned at the right.
  Expr load_broadcast(size_t operand, const Shape& shape, const Index& index) const;
  DType dtype(size_t operand) const;  // the dtype of expressions of this operand

  // A new symbol of the stage, bound to `value`; wraps negative values around if `wrap`.
  Dim bind(Expr value, const Dim& limit, bool wrap = false);

  // Stages. Each takes the bindings that were made since the last stage.
  Expr scalar(std::string name, Expr value);
  Expr reduce(std::string name, loops::Combine combine, const StageLoops& over, Expr value);
  // A local row over `over`, optionally reduced over `reduced`; read with `local`.
  int row(std::string name, const StageLoops& over, Expr value, const StageLoops& reduced = {},
          loops::Combine combine = loops::Combine::kNone);
  Expr local(int stage, const Index& index) const;
  // result[index] = value, rounded to the result's dtype, for each point of `over`.
  void store(const Index& index, Expr value, const StageLoops& over = {}, size_t result = 0);
  void store_reduced(const Index& index, loops::Combine combine, const StageLoops& over, Expr value);
  void store_scan(const Index& index, loops::Combine combine, const StageLoops& over, Expr value);

  loops::Kernel finish() { return std::move(kernel_); }

 private:
  loops::Stage& add_stage(std::string name, Expr value);
  Expr to_result(Expr value, size_t result) const;

  const Node& node_;
  loops::Kernel kernel_;
  std::vector<int> buffers_;  // of each operand; -1 if absent
  int first_result_ = 0;
  int loop_count_ = 0, binding_count_ = 0;
  std::vector<loops::Binding> bindings_;
};

// An elementwise kernel: result[i] = build(operands at i, broadcast).
loops::Kernel lower_elementwise(const Node& node, const std::function<Expr(const std::vector<Expr>&)>& build);
// A gather: result[i] = operand0[where(i)].
loops::Kernel lower_view(const Node& node, const std::function<Index(const Index&)>& where);

// Converts between an index and its row-major position in a shape.
Dim linear_index(const Shape& shape, const Index& index);
Index delinearize(const Shape& shape, const Dim& position);

}  // namespace ingot::core::ops
