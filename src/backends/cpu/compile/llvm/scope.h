// SPDX-License-Identifier: Apache-2.0
// The state of code generation at one point of a kernel, and the evaluation of expressions there.
#pragma once

#include <map>
#include <set>
#include <string>

#include "backends/cpu/compile/llvm/expression_emitter.h"
#include "backends/cpu/compile/prepare/lane_plan.h"

namespace ingot::core::cpu {

// State shared by all points of a kernel.
struct KernelFrame {
  Builder& builder;
  const loops::Kernel& kernel;
  SymbolTable ranges;                 // of symbols, loop variables and bindings
  std::vector<llvm::Value*> buffers;  // pointers
  struct Row {
    llvm::Value* data = nullptr;  // elements in their arithmetic dtype; bool as bytes
    int lanes = 1;                // adjacent values per element: the lanes of a point
  };
  std::vector<Row> rows;          // by stage; only for local rows
  llvm::Value* spare = nullptr;   // memory for loads whose own address must not be accessed
  llvm::Value* status = nullptr;  // i64 in memory
};

// Copied on entry to a loop: values emitted inside are not available after it.
struct Scope {
  std::map<std::string, llvm::Value*, std::less<>>
      values;  // i64; for the lane variable: the value of the first lane
  std::map<std::string, llvm::Value*, std::less<>>
      lane_bindings;                         // bindings that differ by lane: vectors of i64
  std::vector<std::string> order;            // loop variables, outermost first
  std::map<int, llvm::Value*> scalars;       // results of stages without loops
  std::map<int, llvm::Value*> row_elements;  // of rows computed in the current iteration
  std::string lane_variable;
  int lanes = 1;
  llvm::Value* mask = nullptr;  // existing lanes; null: all
  ExpressionEmitter::Memo memo;

  bool varies_by_lane(const Dim& dim) const;
};

// Evaluates at the builder's position.
class ScopeEmitter final : public ExpressionSource {
 public:
  ScopeEmitter(KernelFrame& frame, Scope& scope) : frame_(frame), builder_(frame.builder), scope_(scope) {}

  llvm::Value* evaluate(const loops::Expr& expression);
  llvm::Value* dim(const Dim& dim);  // i64; a vector if it varies by lane
  void store(const loops::Store& store, llvm::Value* value);
  void store_row(int stage, const std::vector<loops::Loop>& loops, llvm::Value* value);

  // Emits the parts of `expression` that do not depend on `inner`: called before those loops. Locals of
  // `pending` and later stages are not available yet. `loads`: the loops run at least once, so their loads
  // may be hoisted.
  void hoist(const loops::Expr& expression, const std::set<std::string>& inner, int pending, bool loads);

  llvm::Value* load(const loops::ExprNode& node, llvm::Value* guard) override;
  llvm::Value* local(const loops::ExprNode& node) override;
  llvm::Value* index(const Dim& index) override { return dim(index); }
  bool needs_guard(const loops::ExprNode& load) override;

 private:
  llvm::Value* scalar_dim(const Dim& dim);
  llvm::Value* lane_dim(const Dim& dim);
  llvm::Value* ordered_sum(const Dim& dim);
  llvm::Value* guarded(llvm::Value* guard);
  std::optional<Dim> lane_stride(const Dim& offset) const;
  llvm::Value* gather(DType stored, llvm::Value* data, const Dim& offset, llvm::Value* mask);
  llvm::Value* load_packed(const loops::ExprNode& node);
  void store_packed(const loops::Store& store, llvm::Value* value);
  std::pair<llvm::Value*, llvm::Value*> packed_place(const loops::Buffer& buffer,
                                                     const std::vector<Dim>& index);
  llvm::Value* address(llvm::Value* data, llvm::Value* offset, DType stored);
  Dim row_offset(int stage, const std::vector<Dim>& index);

  KernelFrame& frame_;
  Builder& builder_;
  Scope& scope_;
};

}  // namespace ingot::core::cpu
