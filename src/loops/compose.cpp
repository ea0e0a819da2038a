// SPDX-License-Identifier: Apache-2.0
#include "loops/compose.h"

#include <algorithm>
#include <set>

#include "loops/rewrite.h"
#include "support/error.h"

namespace ingot::core::loops {
namespace {

using Replacements = std::map<std::string, Dim>;

int buffer_of(const NumberedKernel& kernel, int value) {
  const auto found = std::ranges::find(kernel.values, value);
  invariant(found != kernel.values.end(), "the kernel has no buffer for the composed value");
  return static_cast<int>(found - kernel.values.begin());
}

// Every loop variable and bound symbol of a kernel.
void collect_names(const Kernel& kernel, std::set<std::string>& names) {
  for (const Loop& loop : kernel.parallel) names.insert(loop.variable);
  for (const Stage& stage : kernel.stages) {
    for (const Loop& loop : stage.loops) names.insert(loop.variable);
    for (const Loop& loop : stage.reduce) names.insert(loop.variable);
    for (const Binding& binding : stage.bindings) names.insert(binding.symbol);
  }
}

std::string fresh_name(const std::string& wish, std::set<std::string>& taken) {
  std::string name = wish;
  for (int i = 1; !taken.insert(name).second; ++i) name = wish + "_" + std::to_string(i);
  return name;
}

// Maps the other kernel's buffer numbers to those of `kernel`; missing buffers are appended.
std::vector<int> merge_buffers(NumberedKernel& kernel, const NumberedKernel& other) {
  std::vector<int> numbers;
  for (size_t i = 0; i < other.values.size(); ++i) {
    const auto found = std::ranges::find(kernel.values, other.values[i]);
    if (found == kernel.values.end()) {
      kernel.values.push_back(other.values[i]);
      kernel.kernel.buffers.push_back(other.kernel.buffers[i]);
      numbers.push_back(static_cast<int>(kernel.values.size()) - 1);
    } else {
      numbers.push_back(static_cast<int>(found - kernel.values.begin()));
    }
  }
  for (const auto& [name, info] : other.kernel.symbols) kernel.kernel.symbols.emplace(name, info);
  return numbers;
}

Expr with_buffers(const Expr& expr, const std::vector<int>& numbers) {
  return rewrite(expr, [&](const Expr& node) {
    if (node->kind != ExprNode::Kind::kLoad) return node;
    ExprNode copy = *node;
    copy.buffer = numbers[node->buffer];
    return Expr(std::make_shared<ExprNode>(std::move(copy)));
  });
}

// Drops buffers that no stage loads or stores any more, keeping the order of the others.
void remove_unused_buffers(NumberedKernel& kernel) {
  std::set<int> used;
  const auto see = [&](const Expr& node) {
    if (node->kind == ExprNode::Kind::kLoad) used.insert(node->buffer);
  };
  for (const Stage& stage : kernel.kernel.stages) {
    visit(stage.value, see);
    for (const Binding& binding : stage.bindings) visit(binding.value, see);
    if (stage.store) used.insert(stage.store->buffer);
  }
  std::vector<int> numbers(kernel.values.size(), -1);
  NumberedKernel kept{kernel.kernel, {}};
  kept.kernel.buffers.clear();
  for (const int buffer : used) {
    numbers[buffer] = static_cast<int>(kept.values.size());
    kept.values.push_back(kernel.values[buffer]);
    kept.kernel.buffers.push_back(kernel.kernel.buffers[buffer]);
  }
  use_buffers(kept.kernel, numbers);
  kernel = std::move(kept);
}

// Whether an index is inside the index space of an elementwise kernel.
Expr within(const Kernel& map, const std::vector<Dim>& index) {
  Expr inside = integer_constant(DType::kBool, 1);
  for (size_t i = 0; i < index.size(); ++i) {
    const Expr at = index_value(index[i]);
    const Expr starts = binary(Binary::kLessEqual, integer_constant(DType::kI64, 0), at);
    const Expr ends = binary(Binary::kLess, at, index_value(map.parallel[i].extent));
    inside = binary(Binary::kAnd, inside, binary(Binary::kAnd, starts, ends));
  }
  return inside;
}

// The body of an elementwise kernel at another index: loop variables substituted, bound symbols renamed,
// buffers renumbered. If its value is `guarded`, the index may be out of range; symbols are bound all the
// same, to 0.
struct Body {
  Expr value;
  std::vector<Binding> bindings;
};
Body body_at(const Kernel& map, const std::vector<Dim>& index, const std::vector<int>& numbers,
             std::set<std::string>& taken, bool guarded = false) {
  const Stage& stage = map.stages[0];
  Replacements replacements;
  for (size_t i = 0; i < map.parallel.size(); ++i) replacements.emplace(map.parallel[i].variable, index[i]);
  Body body;
  for (const Binding& binding : stage.bindings) {
    Expr value = with_buffers(substitute(binding.value, replacements), numbers);
    Dim limit = substitute(binding.limit, replacements);
    if (guarded) {
      value = select(within(map, index), value, integer_constant(DType::kI64, 0));
      limit = maximum(limit, 1);
    }
    const std::string name = fresh_name(binding.symbol, taken);
    replacements.insert_or_assign(binding.symbol, Dim::symbol(name));
    body.bindings.push_back({name, value, limit});
  }
  body.value = with_buffers(substitute(stage.value, replacements), numbers);
  return body;
}

// All nodes, each with whether it was reached through an arm of a `select`.
using Seen = std::set<std::pair<const ExprNode*, bool>>;
void collect_guarded(const Expr& expr, bool guarded, Seen& found) {
  if (!found.emplace(expr.get(), guarded).second) return;
  const bool chooses = expr->kind == ExprNode::Kind::kSelect;
  for (size_t i = 0; i < expr->operands.size(); ++i)
    collect_guarded(expr->operands[i], guarded || (chooses && i > 0), found);
}

// A producer's value where it was read.
struct Inlined {
  std::vector<Dim> index;
  bool guarded = false;
  Expr value;
};

// Replaces the loads of `buffer` in one stage by the producer's body: one for each index, or chains whose
// steps read the one before twice would double with each.
void inline_into(Stage& stage, int buffer, const Kernel& producer, const std::vector<int>& numbers,
                 std::set<std::string>& taken) {
  std::vector<Binding> added;
  std::vector<Inlined> inlined;
  Seen seen;
  if (!producer.stages[0].bindings.empty()) {
    collect_guarded(stage.value, false, seen);
    for (const Binding& binding : stage.bindings) collect_guarded(binding.value, false, seen);
  }
  const auto replace = [&](const Expr& node) {
    if (node->kind != ExprNode::Kind::kLoad || node->buffer != buffer) return node;
    const bool guarded = seen.contains({node.get(), true});
    for (const Inlined& known : inlined) {
      if (known.guarded == guarded && known.index == node->index) return known.value;
    }
    Body body = body_at(producer, node->index, numbers, taken, guarded);
    std::ranges::move(body.bindings, std::back_inserter(added));
    return inlined.emplace_back(node->index, guarded, body.value).value;
  };
  std::vector<Binding> bindings;
  for (Binding& binding : stage.bindings) {
    binding.value = rewrite(binding.value, replace);
    std::ranges::move(added, std::back_inserter(bindings));
    added.clear();
    bindings.push_back(std::move(binding));
  }
  stage.value = rewrite(stage.value, replace);
  std::ranges::move(added, std::back_inserter(bindings));
  stage.bindings = std::move(bindings);
}

// The loads of `buffer` in a stage.
std::vector<Expr> loads_of(const Stage& stage, int buffer) {
  std::vector<Expr> loads;
  const auto see = [&](const Expr& node) {
    if (node->kind == ExprNode::Kind::kLoad && node->buffer == buffer) loads.push_back(node);
  };
  visit(stage.value, see);
  for (const Binding& binding : stage.bindings) visit(binding.value, see);
  return loads;
}

// The stage's own loops that an index uses, or nullopt if one of them is inside a compound expression.
std::optional<std::vector<Loop>> row_loops(const Stage& stage, const std::vector<Dim>& index) {
  std::vector<Loop> own = stage.loops, found;
  own.insert(own.end(), stage.reduce.begin(), stage.reduce.end());
  for (const Dim& dim : index) {
    for (const Loop& loop : own) {
      const auto symbols = dim.symbols();
      if (std::ranges::find(symbols, loop.variable) == symbols.end()) continue;
      if (!dim.is_symbol()) return std::nullopt;
      found.push_back(loop);
    }
  }
  return found;
}

// If at least two stages read `buffer` as the same row, prepends a stage that loads the row once.
void keep_row(Kernel& kernel, int buffer, std::set<std::string>& taken) {
  std::vector<std::pair<size_t, Expr>> reads;
  for (size_t s = 0; s < kernel.stages.size(); ++s) {
    for (const Expr& load : loads_of(kernel.stages[s], buffer)) reads.emplace_back(s, load);
  }
  const auto spans = [&] {
    return std::ranges::any_of(reads, [&](const auto& r) { return r.first != reads[0].first; });
  };
  if (reads.size() < 2 || !spans()) return;
  const auto row = row_loops(kernel.stages[reads[0].first], reads[0].second->index);
  if (!row || row->empty()) return;
  Replacements to_row;  // the first reader's loops -> loops of the row
  Stage stage;
  for (const Loop& loop : *row) {
    stage.loops.push_back({fresh_name(loop.variable, taken), loop.extent});
    to_row.emplace(loop.variable, Dim::symbol(stage.loops.back().variable));
  }
  for (const auto& [s, load] : reads) {  // all reads must be of the same row
    const auto other = row_loops(kernel.stages[s], load->index);
    if (!other || other->size() != row->size()) return;
    Replacements to_first;
    for (size_t i = 0; i < row->size(); ++i) {
      if ((*other)[i].extent != (*row)[i].extent) return;
      to_first.emplace((*other)[i].variable, Dim::symbol((*row)[i].variable));
    }
    if (substitute(load, to_first)->index != reads[0].second->index) return;
  }
  stage.name = fresh_name("row", taken);
  stage.value = substitute(reads[0].second, to_row);
  const DType dtype = stage.value->dtype;
  for (Stage& reader : kernel.stages) {
    const auto shift = [&](const Expr& node) {
      if (node->kind == ExprNode::Kind::kLocal) return local(node->stage + 1, node->dtype, node->index);
      if (node->kind != ExprNode::Kind::kLoad || node->buffer != buffer) return node;
      const auto loops = row_loops(reader, node->index);
      std::vector<Dim> index;
      for (const Loop& loop : *loops) index.push_back(Dim::symbol(loop.variable));
      return local(0, dtype, index);
    };
    reader.value = rewrite(reader.value, shift);
    for (Binding& binding : reader.bindings) binding.value = rewrite(binding.value, shift);
  }
  kernel.stages.insert(kernel.stages.begin(), std::move(stage));
}

// The parallel loops become loops of each stage.
void spread_stages(Kernel& kernel) {
  for (Stage& stage : kernel.stages)
    stage.loops.insert(stage.loops.begin(), kernel.parallel.begin(), kernel.parallel.end());
  kernel.parallel.clear();
}

// The stage with variables and bound symbols that are not taken.
Stage renamed(Stage stage, std::set<std::string>& taken) {
  Replacements names;
  const auto rename = [&](std::string& name) {
    const std::string fresh = fresh_name(name, taken);
    names.insert_or_assign(name, Dim::symbol(fresh));
    name = fresh;
  };
  for (Loop& loop : stage.loops) rename(loop.variable);
  for (Binding& binding : stage.bindings) {
    binding.value = substitute(binding.value, names);
    rename(binding.symbol);
  }
  stage.value = substitute(stage.value, names);
  for (Dim& dim : stage.store->index) dim = core::substitute(dim, names);
  return stage;
}

}  // namespace

bool is_elementwise(const Kernel& kernel) {
  if (kernel.stages.size() != 1) return false;
  const Stage& stage = kernel.stages[0];
  if (!stage.loops.empty() || !stage.reduce.empty() || stage.scan || !stage.store) return false;
  if (kernel.buffers[stage.store->buffer].access != Access::kWrite) return false;
  if (stage.store->index.size() != kernel.parallel.size()) return false;
  for (size_t i = 0; i < kernel.parallel.size(); ++i) {
    if (stage.store->index[i] != Dim::symbol(kernel.parallel[i].variable)) return false;
  }
  return true;
}

NumberedKernel inline_producer(const NumberedKernel& consumer, int value, const NumberedKernel& producer) {
  invariant(is_elementwise(producer.kernel), "only elementwise kernels are computed where they are read");
  NumberedKernel result = consumer;
  std::set<std::string> taken;
  collect_names(result.kernel, taken);
  const int buffer = buffer_of(result, value);
  keep_row(result.kernel, buffer, taken);
  const std::vector<int> numbers = merge_buffers(result, producer);
  for (Stage& stage : result.kernel.stages) inline_into(stage, buffer, producer.kernel, numbers, taken);
  remove_unused_buffers(result);
  return result;
}

NumberedKernel append_consumer(const NumberedKernel& producer, int value, const NumberedKernel& consumer) {
  invariant(is_elementwise(consumer.kernel), "only elementwise kernels are appended to a producer");
  NumberedKernel result = producer;
  std::set<std::string> taken;
  collect_names(result.kernel, taken);
  const int stored = buffer_of(result, value);
  const int loaded = buffer_of(consumer, value);
  const std::vector<int> numbers = merge_buffers(result, consumer);
  const Stage& map = consumer.kernel.stages[0];
  const size_t count = result.kernel.stages.size();
  for (size_t s = 0; s < count; ++s) {
    Stage& stage = result.kernel.stages[s];
    if (!stage.store || stage.store->buffer != stored) continue;
    Body body = body_at(consumer.kernel, stage.store->index, numbers, taken);
    const Store target{numbers[map.store->buffer], stage.store->index};
    const bool reduces = stage.combine != Combine::kNone;
    // A reduced value is complete only after its stage, so the consumer becomes a stage of its own.
    Stage* into = &stage;
    Expr source = stage.value;
    if (reduces) {
      std::vector<Dim> point;
      for (const Loop& loop : stage.loops) point.push_back(Dim::symbol(loop.variable));
      source = local(static_cast<int>(s), stage.value->dtype, point);
      Stage epilogue;
      epilogue.name = stage.name + "_epilogue";
      epilogue.loops = stage.loops;
      stage.store.reset();
      invariant(s + 1 == count, "a reduction stores its value but is not the last stage");
      into = &result.kernel.stages.emplace_back(std::move(epilogue));
    }
    const DType loaded_dtype = arithmetic_dtype(consumer.kernel.buffers[loaded].type.dtype);
    const auto replace = [&](const Expr& node) {
      const bool reads = node->kind == ExprNode::Kind::kLoad && node->buffer == stored;
      return reads ? convert(loaded_dtype, source) : node;
    };
    into->value = rewrite(body.value, replace);
    for (Binding& binding : body.bindings) {
      binding.value = rewrite(binding.value, replace);
      into->bindings.push_back(std::move(binding));
    }
    into->store = target;
  }
  remove_unused_buffers(result);
  return result;
}

bool stores_alone(const Kernel& kernel) {
  return std::ranges::all_of(
      kernel.stages, [](const Stage& stage) { return stage.store && stage.combine == Combine::kNone; });
}

NumberedKernel side_by_side(const NumberedKernel& first, const NumberedKernel& second) {
  invariant(stores_alone(first.kernel) && stores_alone(second.kernel),
            "stages of joined kernels hand nothing on");
  NumberedKernel result = first;
  spread_stages(result.kernel);
  std::set<std::string> taken;
  collect_names(result.kernel, taken);
  const std::vector<int> numbers = merge_buffers(result, second);
  for (size_t i = 0; i < numbers.size(); ++i) {
    Buffer& merged = result.kernel.buffers[static_cast<size_t>(numbers[i])];
    if (second.kernel.buffers[i].access != Access::kRead) merged.access = second.kernel.buffers[i].access;
  }
  Kernel other = second.kernel;
  spread_stages(other);
  use_buffers(other, numbers);
  for (Stage& stage : other.stages) result.kernel.stages.push_back(renamed(stage, taken));
  return result;
}

void use_buffers(Kernel& kernel, const std::vector<int>& numbers) {
  for (Stage& stage : kernel.stages) {
    stage.value = with_buffers(stage.value, numbers);
    for (Binding& binding : stage.bindings) binding.value = with_buffers(binding.value, numbers);
    if (stage.store) stage.store->buffer = numbers[stage.store->buffer];
  }
}

NumberedKernel renumber_buffers(const NumberedKernel& kernel, const std::vector<int>& numbers) {
  NumberedKernel result = kernel;
  use_buffers(result.kernel, numbers);
  remove_unused_buffers(result);
  return result;
}

}  // namespace ingot::core::loops
