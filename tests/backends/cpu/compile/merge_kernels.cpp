// SPDX-License-Identifier: Apache-2.0
#include "tests/backends/cpu/compile/merge_kernels.h"

#include <map>

#include <fmt/core.h>

#include "loops/rewrite.h"

namespace ingot::core::cpu::test {
namespace {

using loops::Expr;
using loops::ExprNode;
using loops::Kernel;
using loops::Loop;
using loops::Stage;

// Appends one kernel's stages to those of another.
struct Mover {
  Kernel& into;
  int first_buffer, first_stage;
  std::map<std::string, Dim> names;

  Expr moved(const Expr& value) const {
    return rewrite(substitute(value, names), [&](const Expr& node) -> Expr {
      if (node->kind != ExprNode::Kind::kLoad && node->kind != ExprNode::Kind::kLocal) return node;
      auto copy = std::make_shared<ExprNode>(*node);
      if (node->kind == ExprNode::Kind::kLoad) copy->buffer += first_buffer;
      if (node->kind == ExprNode::Kind::kLocal) copy->stage += first_stage;
      return copy;
    });
  }

  void rename(std::string& name) {
    const std::string unique = fmt::format("{}_{}", name, first_stage);
    names.insert_or_assign(name, Dim::symbol(unique));
    name = unique;
  }

  void move(Stage stage) {
    for (Loop& loop : stage.loops) rename(loop.variable);
    for (Loop& loop : stage.reduce) rename(loop.variable);
    for (loops::Binding& binding : stage.bindings) {
      binding.value = moved(binding.value);
      binding.limit = core::substitute(binding.limit, names);
      rename(binding.symbol);
    }
    stage.value = moved(stage.value);
    if (stage.store) {
      stage.store->buffer += first_buffer;
      for (Dim& dim : stage.store->index) dim = core::substitute(dim, names);
    }
    into.stages.push_back(std::move(stage));
  }
};

}  // namespace

Kernel merge_kernels(std::span<const Kernel> kernels) {
  Kernel merged{.name = "merged", .parallel = kernels[0].parallel};
  for (const Kernel& kernel : kernels) {
    Mover mover{merged, static_cast<int>(merged.buffers.size()), static_cast<int>(merged.stages.size()), {}};
    for (size_t i = 0; i < kernel.parallel.size(); ++i)
      mover.names.emplace(kernel.parallel[i].variable, Dim::symbol(merged.parallel[i].variable));
    for (loops::Buffer buffer : kernel.buffers) {
      buffer.name = fmt::format("{}_{}", buffer.name, merged.buffers.size());
      merged.buffers.push_back(std::move(buffer));
    }
    for (const Stage& stage : kernel.stages) mover.move(stage);
  }
  return merged;
}

}  // namespace ingot::core::cpu::test
