// SPDX-License-Identifier: Apache-2.0
// Loop IR expressions as LLVM values. The caller provides loads, locals and indices, so that generic kernels
// and the epilogues of contractions share this.
#pragma once

#include <map>
#include <unordered_map>

#include "backends/cpu/compile/llvm/control_flow.h"
#include "backends/cpu/compile/llvm/elements.h"
#include "loops/kernel.h"

namespace ingot::core::cpu {

// Each value is a scalar if it is the same in all lanes, otherwise a vector. `guard` (null: none; i1 or a
// vector of i1): the lanes in which a load may access memory.
class ExpressionSource {
 public:
  virtual ~ExpressionSource() = default;
  virtual llvm::Value* load(const loops::ExprNode& node, llvm::Value* guard) = 0;
  virtual llvm::Value* local(const loops::ExprNode& node) = 0;
  virtual llvm::Value* index(const Dim& dim) = 0;  // i64
  // False if the load is known to be inside its buffer for all iterations.
  virtual bool needs_guard(const loops::ExprNode& load) = 0;
};

// Emits each shared node once. The expression must have been processed by loops::expand_math. One emitter
// serves one basic block and those it dominates.
class ExpressionEmitter {
 public:
  // Values of nodes under their guards (null: none).
  using Memo = std::map<std::pair<const loops::ExprNode*, llvm::Value*>, llvm::Value*>;

  // `memo` has values that were emitted before, in blocks that dominate this one.
  ExpressionEmitter(Builder& builder, int lanes, ExpressionSource& source, Memo memo = {})
      : builder_(builder), lanes_(lanes), source_(source), done_(std::move(memo)) {}

  llvm::Value* emit(const loops::Expr& expression, llvm::Value* guard = nullptr);
  llvm::Value* emit_lanes(const loops::Expr& expression) {
    return broadcast(builder_, emit(expression), lanes_);
  }
  llvm::Value* combine(loops::Binary op, DType dtype, llvm::Value* a,
                       llvm::Value* b);  // broadcasts to equal shapes

  bool is_guarded(const loops::Expr& expression);  // contains a load that needs its guard
  const Memo& memo() const { return done_; }

 private:
  using Node = loops::ExprNode;
  llvm::Value* compute(const Node& node, llvm::Value* guard);
  llvm::Value* emit_unary(const Node& node, llvm::Value* a);
  llvm::Value* emit_floating(loops::Binary op, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_integer(loops::Binary op, bool is_signed, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_comparison(loops::Binary op, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_select(const Node& node, llvm::Value* guard);
  llvm::Value* emit_convert(DType from, DType to, llvm::Value* value);
  llvm::Value* both(llvm::Value* guard, llvm::Value* condition);

  Builder& builder_;
  int lanes_;
  ExpressionSource& source_;
  Memo done_;
  std::unordered_map<llvm::Value*, llvm::Value*> wider_;  // the guard that a guard is part of
  std::unordered_map<const Node*, bool> guarded_;         // contains a load that needs its guard
};

}  // namespace ingot::core::cpu
