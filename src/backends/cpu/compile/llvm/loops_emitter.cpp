// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/loops_emitter.h"

#include <algorithm>
#include <set>

#include "backends/cpu/compile/llvm/dim_emitter.h"
#include "backends/cpu/compile/llvm/scope.h"
#include "backends/cpu/compile/llvm/stage_emitter.h"
#include "backends/cpu/compile/prepare/row_groups.h"
#include "loops/expand_math.h"
#include "loops/interpreter.h"
#include "loops/rewrite.h"
#include "support/error.h"

namespace ingot::core::cpu {
namespace {

using loops::Kernel;
using loops::Loop;
using loops::Stage;

constexpr unsigned kSpareBytes = 64;      // memory that masked-off loads may read instead
constexpr int64_t kStackRows = 16 << 10;  // bytes of local rows that may be on the stack

// Offsets of local rows in the rows' memory.
struct RowPlan {
  std::vector<Dim> offsets;  // by stage, in bytes; a multiple of 64
  Dim bytes = 0;
};

RowPlan plan_rows(const Kernel& kernel, const LanePlan& plan) {
  RowPlan rows;
  for (const Stage& stage : kernel.stages) {
    rows.offsets.push_back(rows.bytes);
    if (stage.store || stage.loops.empty()) continue;
    Dim elements = plan.variable.empty() ? 1 : plan.lanes;
    for (const Loop& loop : stage.loops) elements = elements * loop.extent;
    rows.bytes = rows.bytes + ceil_divide(elements * Dim(bit_width(stage.value->dtype) / 8), 64) * Dim(64);
  }
  return rows;
}

bool fits_stack(const Dim& bytes) { return bytes.is_constant() && *bytes.constant() <= kStackRows; }

std::vector<std::vector<int>> each_alone(const Kernel& kernel) {
  std::vector<std::vector<int>> groups;
  for (size_t i = 0; i < kernel.stages.size(); ++i) groups.push_back({static_cast<int>(i)});
  return groups;
}

class KernelEmitter {
 public:
  // `groups`: stages that run in one loop, in order.
  KernelEmitter(llvm::Function* function, const Kernel& kernel, const LanePlan& plan,
                const std::vector<std::vector<int>>& groups)
      : function_(function),
        builder_(function->getContext()),
        kernel_(kernel),
        plan_(plan),
        groups_(groups),
        frame_{.builder = builder_, .kernel = kernel, .ranges = all_ranges(kernel)} {}

  void run() {
    auto* entry = llvm::BasicBlock::Create(function_->getContext(), "entry", function_);
    builder_.SetInsertPoint(entry);
    Scope scope = make_scope();
    place_rows(scope);
    // Extents may be zero if there are no points: nothing below may divide by them.
    emit_if(builder_, builder_.CreateICmpSLT(begin(), end()), [&] {
      if (plan_.variable.empty()) {
        each_point(begin(), end(), kernel_.parallel, scope,
                   [&](Scope& point, llvm::Value*) { run_stages(point); });
      } else {
        each_row(scope);
      }
    });
    builder_.CreateRet(builder_.CreateLoad(builder_.getInt64Ty(), frame_.status));
  }

 private:
  llvm::Value* begin() { return function_->getArg(2); }
  llvm::Value* end() { return function_->getArg(3); }

  Scope make_scope() {
    Scope scope;
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      llvm::Value* slot = builder_.CreateConstInBoundsGEP1_64(builder_.getPtrTy(), function_->getArg(0), i);
      frame_.buffers.push_back(builder_.CreateLoad(builder_.getPtrTy(), slot, kernel_.buffers[i].name));
    }
    uint64_t number = 0;
    for (const std::string& symbol : free_symbols(kernel_)) {
      llvm::Value* slot =
          builder_.CreateConstInBoundsGEP1_64(builder_.getInt64Ty(), function_->getArg(1), number++);
      scope.values[symbol] = builder_.CreateLoad(builder_.getInt64Ty(), slot, symbol);
    }
    // Masked-off lanes compute with these values: zeros are fast, and cause no invalid division.
    frame_.spare = stack_array(builder_, builder_.getInt8Ty(), kSpareBytes, kSpareBytes);
    auto* zeros = llvm::FixedVectorType::get(builder_.getInt8Ty(), kSpareBytes);
    builder_.CreateAlignedStore(llvm::Constant::getNullValue(zeros), frame_.spare, llvm::Align(kSpareBytes));
    frame_.status = stack_array(builder_, builder_.getInt64Ty(), 1, 8);
    builder_.CreateStore(builder_.getInt64(0), frame_.status);
    return scope;
  }

  void place_rows(const Scope& scope) {
    const RowPlan rows = plan_rows(kernel_, plan_);
    frame_.rows.resize(kernel_.stages.size());
    llvm::Value* memory = fits_stack(rows.bytes)
                              ? stack_array(builder_, builder_.getInt8Ty(), *rows.bytes.constant(), 64)
                              : static_cast<llvm::Value*>(function_->getArg(4));
    for (size_t i = 0; i < kernel_.stages.size(); ++i) {
      llvm::Value* offset = DimEmitter{builder_, scope.values, frame_.ranges}.emit(rows.offsets[i]);
      frame_.rows[i] = {builder_.CreatePtrAdd(memory, offset), plan_.variable.empty() ? 1 : plan_.lanes};
    }
  }

  llvm::Value* extent(const Loop& loop, const Scope& scope) {
    return DimEmitter{builder_, scope.values, frame_.ranges}.emit(loop.extent);
  }

  // Runs `body` for the points [first, last) of `loops`, flattened. Loop variables are incremented with
  // carry: divisions are needed only for the first point.
  void each_point(llvm::Value* first, llvm::Value* last, std::span<const Loop> loops, const Scope& scope,
                  const std::function<void(Scope&, llvm::Value* number)>& body) {
    std::vector<llvm::Value*> extents, start(loops.size());
    for (const Loop& loop : loops) extents.push_back(extent(loop, scope));
    llvm::Value* rest = first;
    for (size_t i = loops.size(); i-- > 0;) {
      start[i] = i == 0 ? rest : builder_.CreateURem(rest, extents[i]);
      rest = i == 0 ? rest : builder_.CreateUDiv(rest, extents[i]);
    }
    emit_carrying_loop(builder_, first, last, 1, start,
                       [&](llvm::Value* number, std::span<llvm::Value* const> indices) {
                         Scope inner = scope;
                         for (size_t i = 0; i < loops.size(); ++i) {
                           inner.values[loops[i].variable] = indices[i];
                           inner.order.push_back(loops[i].variable);
                         }
                         body(inner, number);
                         std::vector<llvm::Value*> next(loops.size());
                         llvm::Value* carry = builder_.getInt64(1);
                         for (size_t i = loops.size(); i-- > 0;) {
                           next[i] = builder_.CreateNSWAdd(indices[i], carry);
                           if (i == 0) break;
                           llvm::Value* wraps = builder_.CreateICmpEQ(next[i], extents[i]);
                           next[i] = builder_.CreateSelect(wraps, builder_.getInt64(0), next[i]);
                           carry = builder_.CreateZExt(wraps, builder_.getInt64Ty());
                         }
                         return next;
                       });
  }

  // Lanes are points: rows of the innermost parallel loop, the first and last of which may be partial.
  void each_row(Scope& scope) {
    const Loop& lanes = kernel_.parallel.back();
    const std::span<const Loop> outer(kernel_.parallel.data(), kernel_.parallel.size() - 1);
    if (outer.empty()) return run_row(scope, begin(), end());
    llvm::Value* length = extent(lanes, scope);
    llvm::Value* first = builder_.CreateUDiv(begin(), length);
    llvm::Value* last = builder_.CreateAdd(
        builder_.CreateUDiv(builder_.CreateSub(end(), builder_.getInt64(1)), length), builder_.getInt64(1));
    each_point(first, last, outer, scope, [&](Scope& row, llvm::Value* number) {
      llvm::Value* start = builder_.CreateMul(number, length);
      const auto clip = [&](llvm::Value* place, llvm::Intrinsic::ID id, llvm::Value* limit) {
        return builder_.CreateBinaryIntrinsic(id, builder_.CreateSub(place, start), limit);
      };
      run_row(row, clip(begin(), llvm::Intrinsic::smax, builder_.getInt64(0)),
              clip(end(), llvm::Intrinsic::smin, length));
    });
  }

  void run_row(Scope& row, llvm::Value* first, llvm::Value* last) {
    std::set<std::string> inner{kernel_.parallel.back().variable};
    for (const Stage& stage : kernel_.stages) {
      for (const Loop& loop : stage.loops) inner.insert(loop.variable);
      for (const Loop& loop : stage.reduce) inner.insert(loop.variable);
      for (const auto& binding : stage.bindings) inner.insert(binding.symbol);
    }
    for (const Stage& stage : kernel_.stages) {
      const bool always_runs = stage.loops.empty() && stage.reduce.empty();
      ScopeEmitter(frame_, row).hoist(stage.value, inner, 0, always_runs);
    }
    row.lane_variable = plan_.variable;
    row.order.push_back(plan_.variable);
    const auto run_lanes = [&](int lanes, bool masked) {
      return [&, lanes, masked](llvm::Value* index) {
        Scope block = row;
        block.values[plan_.variable] = index;
        block.lanes = lanes;
        if (masked) block.mask = first_lanes(builder_, builder_.CreateSub(last, index), lanes);
        run_stages(block);
      };
    };
    if (plan_.lanes == 1) return emit_loop(builder_, first, last, 1, run_lanes(1, false));
    llvm::Value* whole = builder_.CreateAnd(builder_.CreateSub(last, first),
                                            builder_.getInt64(static_cast<uint64_t>(-plan_.lanes)));
    llvm::Value* middle = builder_.CreateAdd(first, whole);
    emit_loop(builder_, first, middle, plan_.lanes, run_lanes(plan_.lanes, false));
    if (has_tail())
      emit_loop(builder_, middle, last, plan_.tail_lanes, run_lanes(plan_.tail_lanes, plan_.tail_lanes > 1));
  }

  // No tail loop if both grain and row length are multiples of the vector length.
  bool has_tail() const {
    const auto row = kernel_.parallel.back().extent.constant();
    return !row || *row % plan_.lanes != 0 || plan_.grain % plan_.lanes != 0;
  }

  void run_stages(Scope& scope) {
    for (const std::vector<int>& group : groups_) {
      if (group.size() > 1) {
        StageEmitter::run_together(frame_, plan_, group, scope);
      } else {
        StageEmitter(frame_, plan_, group[0]).run(scope);
      }
    }
  }

  llvm::Function* function_;
  Builder builder_;
  const Kernel& kernel_;
  const LanePlan& plan_;
  const std::vector<std::vector<int>>& groups_;
  KernelFrame frame_;
};

}  // namespace

llvm::Function* emit_loops_function(Code& code, const Kernel& kernel, const std::string& name) {
  loops::verify(kernel);
  llvm::Function* function = create_kernel_function(code, name);
  const LanePlan plan = plan_lanes(kernel, code.features);
  Kernel expanded = loops::expand_math(kernel);
  const auto groups =
      plan.variable.empty() && plan.lanes > 1 ? join_row_stages(expanded) : each_alone(expanded);
  KernelEmitter(function, expanded, plan, groups).run();
  return function;
}

Dim scratch_bytes(const Kernel& kernel, CpuFeatures features) {
  const Dim bytes = plan_rows(kernel, plan_lanes(kernel, features)).bytes;
  return fits_stack(bytes) ? Dim(0) : bytes;
}

}  // namespace ingot::core::cpu
