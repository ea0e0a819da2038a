// SPDX-License-Identifier: Apache-2.0
// Emits one stage of a kernel: its loops, reductions, scans and results.
//
//   for each point of all loops but the last     (nest; short reductions are unrolled)
//     main: for the last loop, plan.lanes at a time, then tail: plan.tail_lanes, masked     (along_lanes)
//       for each point of `reduce`: accumulator = combine(accumulator, value)
//       store, or keep as an element of a local row
//
// A reduction along the lanes has two accumulators, of the main and of the tail loop, which are combined by
// halves at the end. On entry to each loop, `enter` first emits everything that is invariant in the loops
// inside.
#pragma once

#include "backends/cpu/compile/llvm/scope.h"

namespace ingot::core::cpu {

class StageEmitter {
 public:
  StageEmitter(KernelFrame& frame, const LanePlan& plan, int stage)
      : frame_(frame),
        builder_(frame.builder),
        plan_(plan),
        number_(stage),
        stage_(frame.kernel.stages[static_cast<size_t>(stage)]) {}

  using Values = std::vector<llvm::Value*>;

  // For the point, or the lanes' points, of `scope`; a result without loops becomes one of its scalars.
  void run(Scope& scope);
  // Several stages of join_row_stages in a single loop, lanes along their rows.
  static void run_together(KernelFrame& frame, const LanePlan& plan, std::span<const int> stages,
                           Scope& scope);

 private:
  using Loops = std::span<const loops::Loop>;
  // Values carried through loops: the accumulators.
  using Body = std::function<Values(Scope&, const Values&)>;

  Values nest(Loops loops, Scope& scope, const Values& carried, const Body& body);
  bool is_unrolled(const loops::Loop& loop) const;
  Values unrolled(Loops loops, Scope& scope, const Values& carried, const Body& body);
  Values along_lanes(const loops::Loop& loop, Scope& scope, const Values& carried,
                     const std::function<Values(Scope&, const Values&, bool main)>& body);
  void enter(Scope& scope);
  void bind(Scope& scope, const std::set<std::string>& inner);
  void emit_binding(Scope& scope, const loops::Binding& binding);
  void scan(Scope& scope);
  bool scans_along_lanes(const Scope& scope) const;
  bool depends_on_order() const;
  llvm::Value* running_along_lanes(llvm::Value* before, llvm::Value* value, int lanes);
  llvm::Value* running_in_order(llvm::Value* before, llvm::Value* value, int lanes);
  llvm::Value* running_in_steps(llvm::Value* value, int lanes);
  void finish(Scope& scope, llvm::Value* value);
  llvm::Value* value_of(Scope& scope);
  llvm::Value* reduced(Scope& scope);
  llvm::Value* reduced_along_lanes(Scope& scope);
  void accumulate(const Scope& scope, llvm::Value* value, bool main, llvm::Value*& main_sum,
                  llvm::Value*& tail_sum);
  llvm::Value* total(llvm::Value* main_sum, llvm::Value* tail_sum);
  llvm::Value* combine(llvm::Value* a, llvm::Value* b);
  llvm::Value* narrowed(llvm::Value* value, int lanes);
  llvm::Value* identity(int lanes);
  bool lanes_along_stage(const Scope& scope) const;
  const loops::Loop& lane_loop() const {
    return stage_.reduce.empty() ? stage_.loops.back() : stage_.reduce.back();
  }
  int main_lanes(const loops::Loop& loop) const;
  static bool is_short(const loops::Loop& loop);

  KernelFrame& frame_;
  Builder& builder_;
  const LanePlan& plan_;
  int number_;
  const loops::Stage& stage_;
  std::set<std::string> bound_;  // bindings that have a value at the current point
};

}  // namespace ingot::core::cpu
