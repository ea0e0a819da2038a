// SPDX-License-Identifier: Apache-2.0
#include "loops/overwrite.h"

#include <algorithm>
#include <map>
#include <set>

#include "loops/rewrite.h"

namespace ingot::core::loops {
namespace {

using Index = std::vector<Dim>;

struct Load {
  int buffer;
  Index index;
};

// Loads of a stage, including those of the elementwise rows that it reads: an emitter may compute such a row
// where it is read.
class Loads {
 public:
  explicit Loads(const Kernel& kernel) {
    for (const Stage& stage : kernel.stages) stages_.push_back(collect(kernel, stage));
  }
  const std::vector<Load>& of(size_t stage) const { return stages_[stage]; }

 private:
  std::vector<Load> collect(const Kernel& kernel, const Stage& stage) const {
    std::vector<Load> loads;
    const auto add = [&](const Expr& node) {
      if (node->kind == ExprNode::Kind::kLoad) loads.push_back({node->buffer, node->index});
      if (node->kind != ExprNode::Kind::kLocal) return;
      const Stage& source = kernel.stages[static_cast<size_t>(node->stage)];
      if (source.combine != Combine::kNone) return;  // complete before it is read
      std::map<std::string, Dim> here;
      for (size_t i = 0; i < source.loops.size(); ++i) here.emplace(source.loops[i].variable, node->index[i]);
      for (const Load& inner : stages_[static_cast<size_t>(node->stage)]) {
        Load& moved = loads.emplace_back(inner);
        for (Dim& dim : moved.index) dim = core::substitute(dim, here);
      }
    };
    visit(stage.value, add);
    for (const Binding& binding : stage.bindings) visit(binding.value, add);
    return loads;
  }

  std::vector<std::vector<Load>> stages_;
};

// Whether every variable of these loops stands alone somewhere in the index, so that different points have
// different indices.
bool tells_apart(const std::vector<Loop>& loops, const Index& index) {
  return std::ranges::all_of(loops, [&](const Loop& loop) {
    return loop.extent == Dim(1) || std::ranges::find(index, Dim::symbol(loop.variable)) != index.end();
  });
}

// Whether the load only touches elements that the same parallel point stores.
bool stays_in_point(const Kernel& kernel, const Load& load, const Index& stored) {
  std::set<Dim> parallel;
  for (const Loop& loop : kernel.parallel) parallel.insert(Dim::symbol(loop.variable));
  for (size_t d = 0; d < stored.size(); ++d) {
    if (parallel.contains(stored[d]) && load.index[d] != stored[d]) return false;
  }
  return true;
}

}  // namespace

std::vector<uint32_t> overwritable_buffers(const Kernel& kernel) {
  const auto stores = [](const Stage& stage) { return stage.store.has_value(); };
  if (std::ranges::count_if(kernel.stages, stores) != 1) return {};
  const auto storing =
      static_cast<size_t>(std::ranges::find_if(kernel.stages, stores) - kernel.stages.begin());
  const Stage& last = kernel.stages[storing];
  const Store& store = *last.store;
  const auto target = static_cast<size_t>(store.buffer);
  const bool distinct = tells_apart(kernel.parallel, store.index) && tells_apart(last.loops, store.index);
  if (storing + 1 != kernel.stages.size() || last.scan || !distinct) return {};
  if (kernel.buffers[target].access != Access::kWrite) return {};

  const Loads loads(kernel);
  const auto may_take = [&](size_t buffer) {
    for (size_t stage = 0; stage <= storing; ++stage) {
      for (const Load& load : loads.of(stage)) {
        if (load.buffer != static_cast<int>(buffer)) continue;
        const bool safe = stage == storing && last.reduce.empty()
                              ? load.index == store.index
                              : stage != storing && stays_in_point(kernel, load, store.index);
        if (!safe) return false;
      }
    }
    return true;
  };
  std::vector<uint32_t> result;
  for (size_t buffer = 0; buffer < kernel.buffers.size(); ++buffer) {
    const bool whole_bytes =
        bit_width(kernel.buffers[buffer].type.dtype) % 8 == 0;  // otherwise neighbours share bytes
    const bool fits = buffer != target && whole_bytes && kernel.buffers[buffer].access == Access::kRead &&
                      kernel.buffers[buffer].type == kernel.buffers[target].type;
    if (fits && may_take(buffer)) result.push_back(static_cast<uint32_t>(buffer));
  }
  return result;
}

}  // namespace ingot::core::loops
