// SPDX-License-Identifier: Apache-2.0
#include "loops/order_for_storage.h"

#include <algorithm>
#include <set>

#include "loops/index_facts.h"
#include "loops/rewrite.h"

namespace ingot::core::loops {
namespace {

using DimFunction = std::function<Dim(const Dim&)>;
using Visitor = std::function<void(const Dim&)>;
constexpr int64_t kAssumedSize = 61;  // assumed value of a symbol without a typical one, to compare strides

Expr map_indices(const Expr& value, const DimFunction& function) {
  return rewrite(value, [&](const Expr& node) -> Expr {
    if (node->index.empty()) return node;
    auto copy = std::make_shared<ExprNode>(*node);
    for (Dim& dim : copy->index) dim = function(dim);
    return copy;
  });
}

void map_indices(Stage& stage, const DimFunction& function) {
  for (Binding& binding : stage.bindings) binding.value = map_indices(binding.value, function);
  stage.value = map_indices(stage.value, function);
  if (!stage.store) return;
  for (Dim& dim : stage.store->index) dim = function(dim);
}

void visit_indices(const Stage& stage, const Visitor& visitor) {
  const auto of_expression = [&](const Expr& value) {
    visit(value, [&](const Expr& node) { std::ranges::for_each(node->index, visitor); });
  };
  for (const Binding& binding : stage.bindings) of_expression(binding.value);
  of_expression(stage.value);
  if (stage.store) std::ranges::for_each(stage.store->index, visitor);
}

bool stays_shaped(const Buffer& buffer) { return bit_width(buffer.type.dtype) < 8; }

void flatten_buffers(Kernel& kernel) {
  const auto flat = [&](int number, const std::vector<Dim>& index) -> std::vector<Dim> {
    const Buffer& buffer = kernel.buffers[static_cast<size_t>(number)];
    if (stays_shaped(buffer)) return index;
    return {storage_offset(buffer.type.layout, buffer.type.shape, index)};
  };
  const auto flatten = [&](const Expr& value) {
    return rewrite(value, [&](const Expr& node) -> Expr {
      if (node->kind != ExprNode::Kind::kLoad) return node;
      auto copy = std::make_shared<ExprNode>(*node);
      copy->index = flat(node->buffer, node->index);
      return copy;
    });
  };
  for (Stage& stage : kernel.stages) {
    for (Binding& binding : stage.bindings) binding.value = flatten(binding.value);
    stage.value = flatten(stage.value);
    if (stage.store) stage.store->index = flat(stage.store->buffer, stage.store->index);
  }
  for (Buffer& buffer : kernel.buffers) {
    if (!stays_shaped(buffer))
      buffer.type = {buffer.type.dtype, {storage_elements(buffer.type.layout, buffer.type.shape)}, {}};
  }
}

IndexFacts facts_of(const Kernel& kernel, const Stage& stage) {
  IndexFacts facts(kernel.symbols);
  for (const auto* loops : {&kernel.parallel, &stage.loops, &stage.reduce}) {
    for (const Loop& loop : *loops) facts.add(loop);
  }
  for (const Binding& binding : stage.bindings) facts.add({binding.symbol, binding.limit});
  return facts;
}

void simplify_indices(Kernel& kernel) {
  for (Stage& stage : kernel.stages) {
    const IndexFacts facts = facts_of(kernel, stage);
    map_indices(stage, [&](const Dim& dim) { return facts.simplify(dim); });
  }
}

// Whether the stage's loops are the shape of a local row; other loops may be replaced.
bool shapes_a_row(const Stage& stage) { return !stage.store; }

// A divisor of `variable` alone, in a division or remainder somewhere in `dim`.
void find_divisors(const Dim& dim, const std::string& variable, std::set<Dim>& divisors) {
  const bool divides = dim.kind() == Dim::Kind::kFloorDivide || dim.kind() == Dim::Kind::kModulo;
  if (divides && dim.operands()[0].is_symbol() && dim.operands()[0].symbol_name() == variable)
    divisors.insert(dim.operands()[1]);
  for (const Dim& operand : dim.operands()) find_divisors(operand, variable, divisors);
}

// Replaces `loops[place]` by an outer and an inner one of extent `size`.
Dim split_loop(std::vector<Loop>& loops, size_t place, const Dim& size) {
  const Loop loop = loops[place];
  const Loop outer{loop.variable + ".o", floor_divide(loop.extent, size)}, inner{loop.variable + ".i", size};
  loops[place] = outer;
  loops.insert(loops.begin() + static_cast<std::ptrdiff_t>(place) + 1, inner);
  return Dim::symbol(outer.variable) * size + Dim::symbol(inner.variable);
}

// Splits one loop, if an index divides its variable by a divisor of its extent; false if there is none.
bool split_once(Kernel& kernel, std::vector<Loop>& loops, std::span<Stage> users) {
  for (size_t place = 0; place < loops.size(); ++place) {
    const std::string variable = loops[place].variable;
    std::set<Dim> divisors;
    for (const Stage& stage : users)
      visit_indices(stage, [&](const Dim& dim) { find_divisors(dim, variable, divisors); });
    for (const Dim& divisor : divisors) {
      const IndexFacts facts(kernel.symbols);
      if (divisor == loops[place].extent || !facts.divides(divisor, loops[place].extent)) continue;
      const Dim replacement = split_loop(loops, place, divisor);
      for (Stage& stage : users)
        map_indices(stage, [&](const Dim& dim) { return substitute(dim, {{variable, replacement}}); });
      simplify_indices(kernel);
      return true;
    }
  }
  return false;
}

void split_loops(Kernel& kernel) {
  while (split_once(kernel, kernel.parallel, kernel.stages)) {
  }
  for (Stage& stage : kernel.stages) {
    const std::span<Stage> user(&stage, 1);
    while (split_once(kernel, stage.reduce, user)) {
    }
    while (!shapes_a_row(stage) && !stage.scan && split_once(kernel, stage.loops, user)) {
    }
  }
}

// Sorts loops by their strides in `offset`, the smallest innermost.
void sort_by_stride(std::vector<Loop>& loops, const Dim& offset, const SymbolTable& symbols) {
  SymbolValues assumed;
  const auto assume = [&](const std::string& name) {
    const auto info = symbols.find(name);
    const bool known = info != symbols.end();
    assumed[name] = known && info->second.typical
                        ? *info->second.typical
                        : std::max(kAssumedSize, known ? info->second.range.min : 0);
  };
  std::vector<std::pair<int64_t, Loop>> sorted;
  for (const Loop& loop : loops) {
    const auto stride = stride_along(offset, loop.variable);
    if (!stride) return;  // not linear: keep the order
    std::ranges::for_each(stride->symbols(), assume);
    const int64_t size = std::abs(evaluate(*stride, assumed));
    sorted.emplace_back(size == 0 ? INT64_MAX : size, loop);
  }
  std::ranges::stable_sort(sorted, std::greater{}, [](const auto& entry) { return entry.first; });
  for (size_t i = 0; i < loops.size(); ++i) loops[i] = sorted[i].second;
}

// If few elements are adjacent in storage, the loop over an operand's row is the better innermost one: it
// fills vectors.
void prefer_full_rows(Kernel& kernel, const Stage& stage) {
  constexpr int64_t kFew = 8;
  std::vector<Loop>& loops = kernel.parallel;
  const auto is_few = [](const Loop& loop) {
    return loop.extent.is_constant() && *loop.extent.constant() < kFew;
  };
  if (loops.size() < 2 || !stage.loops.empty() || !is_few(loops.back())) return;
  const auto is_read_in_a_row = [&](const Loop& loop) {
    bool found = false;
    visit(stage.value, [&](const Expr& node) {
      const bool loads = node->kind == ExprNode::Kind::kLoad && node->index.size() == 1;
      found = found || (loads && stride_along(node->index[0], loop.variable) == Dim(1));
    });
    return found;
  };
  if (is_read_in_a_row(loops.back())) return;
  const auto row =
      std::ranges::find_if(loops, [&](const Loop& loop) { return !is_few(loop) && is_read_in_a_row(loop); });
  if (row != loops.end()) std::rotate(row, row + 1, loops.end());
}

void order_loops(Kernel& kernel) {
  for (const Stage& stage : kernel.stages) {
    if (!stage.store || stays_shaped(kernel.buffers[static_cast<size_t>(stage.store->buffer)])) continue;
    sort_by_stride(kernel.parallel, stage.store->index[0], kernel.symbols);
    prefer_full_rows(kernel, stage);
    break;
  }
  for (Stage& stage : kernel.stages) {
    const bool is_map = stage.store && stage.combine == Combine::kNone && kernel.parallel.empty();
    if (is_map && !stays_shaped(kernel.buffers[static_cast<size_t>(stage.store->buffer)]))
      sort_by_stride(stage.loops, stage.store->index[0], kernel.symbols);
    if (stage.reduce.size() < 2) continue;
    std::optional<Dim> offset;
    visit(stage.value, [&](const Expr& node) {
      if (node->kind == ExprNode::Kind::kLoad && !offset) offset = node->index[0];
    });
    if (offset) sort_by_stride(stage.reduce, *offset, kernel.symbols);
  }
}

// Whether one step of `outer` moves every index as far as all steps of `inner`.
bool run_together(const Loop& outer, const Loop& inner, std::span<const Stage> users) {
  bool together = true;
  for (const Stage& stage : users) {
    visit_indices(stage, [&](const Dim& dim) {
      const auto far = stride_along(dim, outer.variable), near = stride_along(dim, inner.variable);
      together = together && far && near && *far == *near * inner.extent;
    });
  }
  return together;
}

void collapse(std::vector<Loop>& loops, std::span<Stage> users) {
  for (size_t place = loops.size(); place-- > 1;) {
    const Loop outer = loops[place - 1], inner = loops[place];
    if (!run_together(outer, inner, users)) continue;
    // The inner variable now runs over both extents.
    for (Stage& stage : users)
      map_indices(stage, [&](const Dim& dim) { return substitute(dim, {{outer.variable, 0}}); });
    loops[place - 1] = {inner.variable, outer.extent * inner.extent};
    loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(place));
  }
}

// Flattens rows of several dims, indexed by their flat index, so that their loops can be merged.
void flatten_rows(Kernel& kernel, size_t number) {
  const std::vector<Loop> loops = kernel.stages[number].loops;
  const auto flat = [&](const std::vector<Dim>& index) {
    Dim offset = 0;
    for (size_t i = 0; i < loops.size(); ++i) offset = offset * loops[i].extent + index[i];
    return offset;
  };
  Kernel changed = kernel;
  std::vector<Loop>& own = changed.stages[number].loops;
  collapse(own, {&changed.stages[number], 1});
  if (own.size() > 1) return;
  for (Stage& stage : changed.stages) {
    stage.value = rewrite(stage.value, [&](const Expr& node) -> Expr {
      if (node->kind != ExprNode::Kind::kLocal || node->stage != static_cast<int>(number)) return node;
      return local(node->stage, node->dtype, {flat(node->index)});
    });
  }
  kernel = std::move(changed);
}

void collapse_loops(Kernel& kernel) {
  for (size_t i = 0; i < kernel.stages.size(); ++i) {
    if (shapes_a_row(kernel.stages[i]) && kernel.stages[i].loops.size() > 1 && !kernel.stages[i].scan)
      flatten_rows(kernel, i);
  }
  simplify_indices(kernel);
  collapse(kernel.parallel, kernel.stages);
  for (Stage& stage : kernel.stages) {
    const std::span<Stage> user(&stage, 1);
    collapse(stage.reduce, user);
    if (!shapes_a_row(stage) && !stage.scan) collapse(stage.loops, user);
  }
}

void drop_single_points(Kernel& kernel) {
  const auto single = [](const Loop& loop) { return loop.extent == Dim(1); };
  std::map<std::string, Dim> zeros;
  for (const Loop& loop : kernel.parallel) {
    if (single(loop)) zeros[loop.variable] = 0;
  }
  for (Stage& stage : kernel.stages)
    map_indices(stage, [&](const Dim& dim) { return substitute(dim, zeros); });
  std::erase_if(kernel.parallel, single);
}

}  // namespace

Kernel order_for_storage(Kernel kernel) {
  flatten_buffers(kernel);
  drop_single_points(kernel);
  simplify_indices(kernel);
  split_loops(kernel);
  order_loops(kernel);
  collapse_loops(kernel);
  return kernel;
}

}  // namespace ingot::core::loops
