// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/stage_emitter.h"

#include <algorithm>

#include "backends/cpu/compile/llvm/dim_emitter.h"
#include "loops/interpreter.h"
#include "loops/rewrite.h"
#include "loops/scalar.h"

namespace ingot::core::cpu {

using loops::Loop;

void StageEmitter::run(Scope& scope) {
  enter(scope);
  if (stage_.scan) return scan(scope);
  if (stage_.loops.empty()) return finish(scope, reduced(scope));
  const Loops loops = stage_.loops;
  if (!lanes_along_stage(scope) || !stage_.reduce.empty()) {
    nest(loops, scope, {}, [&](Scope& point, const Values&) {
      finish(point, reduced(point));
      return Values{};
    });
    return;
  }
  nest(loops.first(loops.size() - 1), scope, {}, [&](Scope& outer, const Values&) {
    enter(outer);
    return along_lanes(loops.back(), outer, {}, [&](Scope& lanes, const Values&, bool) {
      finish(lanes, value_of(lanes));
      return Values{};
    });
  });
}

// Lanes are along this stage's own loop, if points are computed one at a time.
bool StageEmitter::lanes_along_stage(const Scope& scope) const {
  return plan_.variable.empty() && plan_.lanes > 1 && scope.lanes == 1;
}

void StageEmitter::scan(Scope& scope) {
  const Loops loops = stage_.loops;
  nest(loops.first(loops.size() - 1), scope, {}, [&](Scope& outer, const Values&) {
    if (scans_along_lanes(outer)) {
      enter(outer);
      return along_lanes(loops.back(), outer, {identity(1)}, [&](Scope& point, const Values& carried, bool) {
        llvm::Value* running = running_along_lanes(carried[0], value_of(point), point.lanes);
        finish(point, running);
        const auto last = static_cast<uint64_t>(point.lanes - 1);
        return Values{point.lanes == 1 ? running : builder_.CreateExtractElement(running, last)};
      });
    }
    return nest(loops.last(1), outer, {identity(outer.lanes)}, [&](Scope& point, const Values& carried) {
      llvm::Value* running = combine(carried[0], reduced(point));
      finish(point, running);
      return Values{running};
    });
  });
}

bool StageEmitter::scans_along_lanes(const Scope& scope) const {
  return lanes_along_stage(scope) && stage_.reduce.empty();
}

// Sums and products of floats depend on their order, and lanes on what is fused.
bool StageEmitter::depends_on_order() const {
  const bool is_extreme =
      stage_.combine == loops::Combine::kMaximum || stage_.combine == loops::Combine::kMinimum;
  return !is_extreme && is_floating(stage_.value->dtype);
}

// Lane i of the result combines what was `before` with lanes 0 to i.
llvm::Value* StageEmitter::running_along_lanes(llvm::Value* before, llvm::Value* value, int lanes) {
  if (lanes == 1) return combine(before, value);
  value = broadcast(builder_, value, lanes);
  return depends_on_order() ? running_in_order(before, value, lanes)
                            : combine(before, running_in_steps(value, lanes));
}

// One lane after the other; values are loaded, computed, converted and stored by vectors.
llvm::Value* StageEmitter::running_in_order(llvm::Value* before, llvm::Value* value, int lanes) {
  llvm::Value* running = value;
  for (int lane = 0; lane < lanes; ++lane) {
    const auto at = static_cast<uint64_t>(lane);
    before = combine(before, builder_.CreateExtractElement(value, at));
    running = builder_.CreateInsertElement(running, before, at);
  }
  return running;
}

// In each step, with what `distance` lanes before have combined.
llvm::Value* StageEmitter::running_in_steps(llvm::Value* value, int lanes) {
  llvm::Value* start = identity(lanes);
  for (int distance = 1; distance < lanes; distance *= 2) {
    std::vector<int> moved;
    for (int i = 0; i < lanes; ++i) moved.push_back(i + lanes - distance);
    value = combine(builder_.CreateShuffleVector(start, value, moved), value);
  }
  return value;
}

// Serial loops around `body`, with values carried from point to point.
StageEmitter::Values StageEmitter::nest(Loops loops, Scope& scope, const Values& carried, const Body& body) {
  if (loops.empty()) return body(scope, carried);
  const Loop& loop = loops[0];
  if (is_unrolled(loop)) return unrolled(loops, scope, carried, body);
  llvm::Value* extent = ScopeEmitter(frame_, scope).dim(loop.extent);
  const auto known = bound_;
  Values result =
      emit_carrying_loop(builder_, builder_.getInt64(0), extent, 1, carried,
                         [&](llvm::Value* index, std::span<llvm::Value* const> current) {
                           Scope inner = scope;
                           inner.values[loop.variable] = index;
                           inner.order.push_back(loop.variable);
                           enter(inner);
                           return nest(loops.subspan(1), inner, Values(current.begin(), current.end()), body);
                         });
  bound_ = known;
  return result;
}

// Windows are small, and most of their indices and guards become constant when unrolled.
bool StageEmitter::is_unrolled(const Loop& loop) const {
  constexpr int64_t kTurns = 16, kNodes = 60;
  int64_t turns = 1, nodes = 0;
  for (const Loop& other : stage_.reduce) {
    const auto extent = other.extent.constant();
    if (!extent) return false;
    turns *= *extent;
  }
  visit(stage_.value, [&](const loops::Expr&) { ++nodes; });
  const bool reduces =
      std::ranges::any_of(stage_.reduce, [&](const Loop& other) { return other.variable == loop.variable; });
  return reduces && turns <= kTurns && turns * nodes <= kTurns * kNodes;
}

StageEmitter::Values StageEmitter::unrolled(Loops loops, Scope& scope, const Values& carried,
                                            const Body& body) {
  const auto known = bound_;
  Values values = carried;
  for (int64_t turn = 0; turn < *loops[0].extent.constant(); ++turn) {
    Scope inner = scope;
    inner.values[loops[0].variable] = builder_.getInt64(static_cast<uint64_t>(turn));
    inner.order.push_back(loops[0].variable);
    enter(inner);
    values = nest(loops.subspan(1), inner, values, body);
    bound_ = known;
  }
  return values;
}

int StageEmitter::main_lanes(const Loop& loop) const {
  int lanes = plan_.lanes;
  const auto extent = loop.extent.constant();
  while (extent && lanes > plan_.tail_lanes && lanes > *extent && lanes % 2 == 0) lanes /= 2;
  return std::max(lanes, 2);
}

// The main loop in whole vectors, then the tail.
StageEmitter::Values StageEmitter::along_lanes(
    const Loop& loop, Scope& scope, const Values& carried,
    const std::function<Values(Scope&, const Values&, bool main)>& body) {
  const int lanes = main_lanes(loop);
  llvm::Value* extent = ScopeEmitter(frame_, scope).dim(loop.extent);
  llvm::Value* middle = builder_.CreateAnd(extent, builder_.getInt64(static_cast<uint64_t>(-lanes)));
  const auto known = bound_;
  const auto run = [&](llvm::Value* first, llvm::Value* last, int width, const Values& initial, bool main) {
    Values result =
        emit_carrying_loop(builder_, first, last, width, initial,
                           [&](llvm::Value* index, std::span<llvm::Value* const> current) {
                             Scope inner = scope;
                             inner.values[loop.variable] = index;
                             inner.order.push_back(loop.variable);
                             inner.lane_variable = loop.variable;
                             inner.lanes = width;
                             if (!main && width > 1)
                               inner.mask = first_lanes(builder_, builder_.CreateSub(extent, index), width);
                             enter(inner);
                             return body(inner, Values(current.begin(), current.end()), main);
                           });
    bound_ = known;
    return result;
  };
  Values result = carried;
  const auto fixed = loop.extent.constant();
  if (!fixed || *fixed >= lanes) result = run(builder_.getInt64(0), middle, lanes, result, true);
  if (!fixed || *fixed % lanes != 0) result = run(middle, extent, plan_.tail_lanes, result, false);
  return result;
}

// Computes everything that the loops still to be entered do not change.
void StageEmitter::enter(Scope& scope) {
  std::set<std::string> inner;
  bool runs = true;
  const auto add = [&](Loops loops) {
    for (const Loop& loop : loops) {
      if (scope.values.contains(loop.variable) && std::ranges::count(scope.order, loop.variable) > 0)
        continue;
      inner.insert(loop.variable);
      runs = runs && range_of(loop.extent, frame_.ranges).min > 0;
    }
  };
  add(stage_.loops);
  add(stage_.reduce);
  bind(scope, inner);
  for (const loops::Binding& binding : stage_.bindings) {
    if (!bound_.contains(binding.symbol)) inner.insert(binding.symbol);
  }
  if (inner.empty()) return;  // innermost: the body itself
  ScopeEmitter(frame_, scope).hoist(stage_.value, inner, number_, runs);
}

// Evaluates bindings in order, as far as they do not depend on loops still to be entered.
void StageEmitter::bind(Scope& scope, const std::set<std::string>& inner) {
  std::set<std::string> open = inner;
  for (const loops::Binding& binding : stage_.bindings) {
    if (bound_.contains(binding.symbol)) continue;
    const bool waits =
        std::ranges::any_of(open, [&](const std::string& name) { return uses_symbol(binding.value, name); });
    if (waits) {
      open.insert(binding.symbol);
    } else {
      emit_binding(scope, binding);
    }
  }
}

void StageEmitter::emit_binding(Scope& scope, const loops::Binding& binding) {
  ScopeEmitter emitter(frame_, scope);
  llvm::Value* value = emitter.evaluate(binding.value);
  llvm::Value* limit = emitter.dim(binding.limit);
  const bool lanes = value->getType()->isVectorTy();
  // As unsigned values, negative ones exceed every limit.
  llvm::Value* outside =
      builder_.CreateICmpUGE(value, lanes ? broadcast(builder_, limit, scope.lanes) : limit);
  llvm::Value* checked =
      builder_.CreateSelect(outside, llvm::Constant::getNullValue(value->getType()), value);
  llvm::Value* wrong = outside;
  if (lanes)
    wrong =
        builder_.CreateOrReduce(scope.mask == nullptr ? outside : builder_.CreateAnd(outside, scope.mask));
  emit_if(builder_, wrong, [&] {
    builder_.CreateStore(builder_.getInt64(static_cast<uint64_t>(loops::KernelStatus::kIndexOutOfRange)),
                         frame_.status);
  });
  (lanes ? scope.lane_bindings : scope.values)[binding.symbol] = checked;
  bound_.insert(binding.symbol);
}

llvm::Value* StageEmitter::value_of(Scope& scope) {
  return ScopeEmitter(frame_, scope).evaluate(stage_.value);
}

// The stage's value at one point of its loops, reduced if it is a reduction.
llvm::Value* StageEmitter::reduced(Scope& scope) {
  if (stage_.reduce.empty()) return value_of(scope);
  if (lanes_along_stage(scope) && !is_short(stage_.reduce.back())) return reduced_along_lanes(scope);
  return nest(stage_.reduce, scope, {identity(scope.lanes)}, [&](Scope& point, const Values& carried) {
    return Values{combine(carried[0], broadcast(builder_, value_of(point), point.lanes))};
  })[0];
}

// Fewer elements than lanes: reduced sequentially.
bool StageEmitter::is_short(const Loop& loop) {
  const auto extent = loop.extent.constant();
  return extent && *extent <= 4;
}

llvm::Value* StageEmitter::reduced_along_lanes(Scope& scope) {
  const Loops loops = stage_.reduce;
  const Values start{identity(main_lanes(loops.back())), identity(plan_.tail_lanes)};
  const Values sums =
      nest(loops.first(loops.size() - 1), scope, start, [&](Scope& outer, const Values& outer_sums) {
        enter(outer);
        return along_lanes(loops.back(), outer, outer_sums,
                           [&](Scope& point, const Values& carried, bool main) {
                             Values next = carried;
                             accumulate(point, value_of(point), main, next[0], next[1]);
                             return next;
                           });
      });
  return total(sums[0], sums[1]);
}

void StageEmitter::accumulate(const Scope& scope, llvm::Value* value, bool main, llvm::Value*& main_sum,
                              llvm::Value*& tail_sum) {
  value = broadcast(builder_, value, scope.lanes);
  if (main) {
    main_sum = combine(main_sum, value);
    return;
  }
  llvm::Value* next = combine(tail_sum, value);
  tail_sum = scope.mask == nullptr ? next : builder_.CreateSelect(scope.mask, next, tail_sum);
}

llvm::Value* StageEmitter::total(llvm::Value* main_sum, llvm::Value* tail_sum) {
  return narrowed(combine(narrowed(main_sum, plan_.tail_lanes), tail_sum), 1);
}

void StageEmitter::run_together(KernelFrame& frame, const LanePlan& plan, std::span<const int> stages,
                                Scope& scope) {
  std::vector<StageEmitter> members;
  for (const int stage : stages) members.emplace_back(frame, plan, stage);
  StageEmitter& first = members[0];
  const Loop& loop = first.lane_loop();
  Values start;  // two accumulators per reduction
  for (StageEmitter& member : members) {
    member.enter(scope);
    if (member.stage_.reduce.empty()) continue;
    start.push_back(member.identity(member.main_lanes(loop)));
    start.push_back(member.identity(plan.tail_lanes));
  }
  const Values sums =
      first.along_lanes(loop, scope, start, [&](Scope& point, const Values& carried, bool main) {
        Values next = carried;
        size_t sum = 0;
        for (StageEmitter& member : members) {
          llvm::Value* value = member.value_of(point);
          if (member.stage_.reduce.empty()) {
            member.finish(point, value);
            point.row_elements[member.number_] = value;
          } else {
            member.accumulate(point, value, main, next[sum], next[sum + 1]);
            sum += 2;
          }
        }
        return next;
      });
  size_t sum = 0;
  for (StageEmitter& member : members) {
    if (member.stage_.reduce.empty()) continue;
    member.finish(scope, member.total(sums[sum], sums[sum + 1]));
    sum += 2;
  }
}

llvm::Value* StageEmitter::combine(llvm::Value* a, llvm::Value* b) {
  Scope none;
  ScopeEmitter source(frame_, none);
  const auto lanes_of = [](llvm::Value* value) {
    const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    return type == nullptr ? 1 : static_cast<int>(type->getNumElements());
  };
  return ExpressionEmitter(builder_, std::max(lanes_of(a), lanes_of(b)), source)
      .combine(binary_of(stage_.combine), stage_.value->dtype, a, b);
}

// Combines halves until `lanes` are left.
llvm::Value* StageEmitter::narrowed(llvm::Value* value, int lanes) {
  while (true) {
    auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    if (type == nullptr || static_cast<int>(type->getNumElements()) <= lanes) return value;
    const int half = static_cast<int>(type->getNumElements()) / 2;
    if (half == 1)
      return combine(builder_.CreateExtractElement(value, uint64_t{0}),
                     builder_.CreateExtractElement(value, 1));
    std::vector<int> low, high;
    for (int i = 0; i < half; ++i) {
      low.push_back(i);
      high.push_back(half + i);
    }
    value = combine(builder_.CreateShuffleVector(value, low), builder_.CreateShuffleVector(value, high));
  }
}

llvm::Value* StageEmitter::identity(int lanes) {
  const DType dtype = stage_.value->dtype;
  const loops::Scalar value = identity_of(stage_.combine, dtype);
  return broadcast(builder_, constant_value(builder_, dtype, value.number, value.integer), lanes);
}

void StageEmitter::finish(Scope& scope, llvm::Value* value) {
  ScopeEmitter emitter(frame_, scope);
  if (stage_.store) {
    emitter.store(*stage_.store, value);
    const bool read_back =
        frame_.kernel.buffers[static_cast<size_t>(stage_.store->buffer)].access == loops::Access::kReadWrite;
    if (read_back) scope.memo.clear();
  } else if (stage_.loops.empty()) {
    scope.scalars[number_] = value;
  } else {
    emitter.store_row(number_, stage_.loops, value);
  }
}

}  // namespace ingot::core::cpu
