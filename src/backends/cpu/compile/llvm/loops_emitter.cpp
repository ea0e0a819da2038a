// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/loops_emitter.h"

#include <algorithm>
#include <set>

#include "backends/cpu/compile/llvm/dim_emitter.h"
#include "backends/cpu/compile/llvm/scope.h"
#include "backends/cpu/compile/llvm/stage_emitter.h"
#include "backends/cpu/compile/prepare/row_breaks.h"
#include "loops/expand_math.h"
#include "loops/interpreter.h"
#include "loops/rewrite.h"
#include "support/error.h"

namespace ingot::core::cpu {
namespace {

using loops::Kernel;
using loops::Loop;
using loops::Stage;

constexpr unsigned kSpareBytes = 64;  // memory that masked-off loads may read instead
constexpr int64_t kUnrolled = 4;      // blocks of lanes of a row that become straight code

class KernelEmitter {
 public:
  // `kernel`: that of `prepared` with its functions expanded.
  KernelEmitter(llvm::Function* function, const Kernel& kernel, const PreparedKernel& prepared)
      : function_(function),
        builder_(function->getContext()),
        kernel_(kernel),
        plan_(prepared.lanes),
        rows_(prepared.rows),
        groups_(prepared.groups),
        breaks_(row_breaks(kernel, prepared.lanes)),
        whole_range_(prepared.whole_range),
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
    frame_.rows.resize(kernel_.stages.size());
    llvm::Value* memory = rows_.on_stack
                              ? stack_array(builder_, builder_.getInt8Ty(), *rows_.bytes.constant(), 64)
                              : static_cast<llvm::Value*>(function_->getArg(4));
    for (size_t i = 0; i < kernel_.stages.size(); ++i) {
      llvm::Value* offset = DimEmitter{builder_, scope.values, frame_.ranges}.emit(rows_.offsets[i]);
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

  // Whether no part of the work range begins or ends within a row, so that all rows have the same constant
  // limits.
  bool has_whole_rows() const {
    const auto row = kernel_.parallel.back().extent.constant();
    return row && *row > 0 && plan_.grain % *row == 0;
  }

  // Lanes are points: rows of the innermost parallel loop, the first and last of which may be partial.
  void each_row(Scope& scope) {
    const Loop& lanes = kernel_.parallel.back();
    const std::span<const Loop> outer(kernel_.parallel.data(), kernel_.parallel.size() - 1);
    if (outer.empty()) return run_row(scope, begin(), end());
    llvm::Value* length = extent(lanes, scope);
    if (whole_range_) {
      llvm::Value* rows = builder_.getInt64(1);
      for (const Loop& loop : outer) rows = builder_.CreateNSWMul(rows, extent(loop, scope));
      return each_point(builder_.getInt64(0), rows, outer, scope,
                        [&](Scope& row, llvm::Value*) { run_row(row, builder_.getInt64(0), length); });
    }
    llvm::Value* first = builder_.CreateUDiv(begin(), length);
    if (has_whole_rows())
      return each_point(first, builder_.CreateUDiv(end(), length), outer, scope,
                        [&](Scope& row, llvm::Value*) { run_row(row, builder_.getInt64(0), length); });
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
    llvm::Value* start = first;
    for (size_t part = 0; part <= breaks_.size(); ++part) {
      llvm::Value* stop = last;
      if (part < breaks_.size()) stop = clamped(ScopeEmitter(frame_, row).dim(breaks_[part].at), start, last);
      Scope inside = row;
      for (size_t i = 0; i < breaks_.size(); ++i) {
        for (const auto& [condition, holds_before] : breaks_[i].conditions)
          inside.memo[{condition, nullptr}] = builder_.getInt1(holds_before == (part <= i));
      }
      run_part(inside, start, stop);
      start = stop;
    }
  }

  llvm::Value* clamped(llvm::Value* value, llvm::Value* low, llvm::Value* high) {
    const auto* known = llvm::dyn_cast<llvm::ConstantInt>(value);
    const auto* lowest = llvm::dyn_cast<llvm::ConstantInt>(low);
    const auto* highest = llvm::dyn_cast<llvm::ConstantInt>(high);
    if (known != nullptr && lowest != nullptr && highest != nullptr)  // rows of few blocks are straight code
      return builder_.getInt64(static_cast<uint64_t>(
          std::clamp(known->getSExtValue(), lowest->getSExtValue(), highest->getSExtValue())));
    return builder_.CreateBinaryIntrinsic(
        llvm::Intrinsic::smin, builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, value, low), high);
  }

  void run_part(Scope& part, llvm::Value* first, llvm::Value* last) {
    const auto run_lanes = [&](int lanes, bool masked) {
      return [&, lanes, masked](llvm::Value* index) {
        Scope block = part;
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
    emit_blocks(first, middle, run_lanes(plan_.lanes, false));
    if (has_tail())
      emit_loop(builder_, middle, last, plan_.tail_lanes, run_lanes(plan_.tail_lanes, plan_.tail_lanes > 1));
  }

  // A loop, or straight code for the few blocks of a row of known length.
  void emit_blocks(llvm::Value* first, llvm::Value* last,
                   const std::function<void(llvm::Value* index)>& body) {
    const auto* begin = llvm::dyn_cast<llvm::ConstantInt>(first);
    const auto* end = llvm::dyn_cast<llvm::ConstantInt>(last);
    if (begin == nullptr || end == nullptr ||
        end->getSExtValue() - begin->getSExtValue() > kUnrolled * plan_.lanes)
      return emit_loop(builder_, first, last, plan_.lanes, body);
    for (int64_t i = begin->getSExtValue(); i < end->getSExtValue(); i += plan_.lanes)
      body(builder_.getInt64(static_cast<uint64_t>(i)));
  }

  // No tail loop if both grain and row length are multiples of the vector length.
  bool has_tail() const {
    const auto row = kernel_.parallel.back().extent.constant();
    const auto splits_vector = [&](const RowBreak& each) {
      return each.at.constant().value_or(1) % plan_.lanes != 0;
    };
    return !row || *row % plan_.lanes != 0 || plan_.grain % plan_.lanes != 0 ||
           std::ranges::any_of(breaks_, splits_vector);
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
  const RowPlan& rows_;
  const std::vector<std::vector<int>>& groups_;
  const std::vector<RowBreak> breaks_;
  const bool whole_range_;
  KernelFrame frame_;
};

}  // namespace

llvm::Function* emit_loops_function(Code& code, const PreparedKernel& prepared, const std::string& name) {
  llvm::Function* function = create_kernel_function(code, name);
  const Kernel expanded = loops::expand_math(prepared.kernel);
  KernelEmitter(function, expanded, prepared).run();
  return function;
}

}  // namespace ingot::core::cpu
