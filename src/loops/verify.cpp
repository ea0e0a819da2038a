// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "loops/kernel.h"
#include "loops/rewrite.h"
#include "support/error.h"

namespace ingot::core::loops {
namespace {

using VariableNames = std::set<std::string>;

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  void run() {
    collect_local_names();
    for (const Buffer& buffer : kernel_.buffers) {
      require(!is_complex(buffer.type.dtype), "a buffer is complex");
      check_shape_dims(buffer.type.shape);
    }
    VariableNames outer;
    for (const Loop& loop : kernel_.parallel) declare(loop, outer);
    for (stage_ = 0; stage_ < kernel_.stages.size(); ++stage_) check_stage(kernel_.stages[stage_], outer);
  }

 private:
  void require(bool condition, std::string_view rule) const {
    if (condition) return;
    const std::string place =
        stage_ < kernel_.stages.size() ? fmt::format(", stage '{}'", kernel_.stages[stage_].name) : "";
    throw InternalError(fmt::format("kernel '{}'{}: {}\n{}", kernel_.name, place, rule, to_string(kernel_)));
  }

  void collect_local_names() {
    for (const Loop& loop : kernel_.parallel) local_names_.insert(loop.variable);
    for (const Stage& stage : kernel_.stages) {
      for (const Loop& loop : stage.loops) local_names_.insert(loop.variable);
      for (const Loop& loop : stage.reduce) local_names_.insert(loop.variable);
      for (const Binding& binding : stage.bindings) local_names_.insert(binding.symbol);
    }
  }

  void check_shape_dims(std::span<const Dim> dims) const {
    for (const Dim& dim : dims) check_scope(dim, {});
  }

  // Names of variables anywhere in the kernel must be in scope here; all others are shape symbols.
  void check_scope(const Dim& dim, const VariableNames& scope) const {
    for (const std::string& name : dim.symbols()) {
      require(!local_names_.contains(name) || scope.contains(name),
              fmt::format("'{}' is used outside its loop", name));
    }
  }

  void declare(const Loop& loop, VariableNames& scope) const {
    check_scope(loop.extent, {});
    require(scope.insert(loop.variable).second, fmt::format("loop variable '{}' is taken", loop.variable));
  }

  void check_stage(const Stage& stage, VariableNames scope) const {
    for (const Loop& loop : stage.loops) declare(loop, scope);
    VariableNames stored = scope;  // the store is outside the reduction
    for (const Loop& loop : stage.reduce) declare(loop, scope);
    require((stage.combine == Combine::kNone) == (stage.reduce.empty() && !stage.scan),
            "combine without a reduction, or a reduction without combine");
    require(!stage.scan || !stage.loops.empty(), "a scan without a loop");
    for (const Binding& binding : stage.bindings) {
      require(binding.value->dtype == DType::kI64, "a binding is not i64");
      check_expression(binding.value, scope);
      check_scope(binding.limit, {});
      require(scope.insert(binding.symbol).second, fmt::format("binding '{}' is taken", binding.symbol));
      stored.insert(binding.symbol);
      for (const Loop& loop : stage.reduce) {
        if (uses_symbol(binding.value, loop.variable)) stored.erase(binding.symbol);
      }
    }
    check_expression(stage.value, scope);
    if (stage.store) check_store(stage, stored);
  }

  void check_store(const Stage& stage, const VariableNames& scope) const {
    const Buffer& buffer = buffer_at(stage.store->buffer);
    require(buffer.access != Access::kRead, "a store to a buffer that is only read");
    require(stage.store->index.size() == buffer.type.rank(),
            "the rank of a store's index differs from its buffer's");
    const bool rounds = stage.value->dtype == DType::kF64 && is_floating(buffer.type.dtype);
    require(rounds || stage.value->dtype == arithmetic_dtype(buffer.type.dtype),
            "the dtype of a stored value differs from its buffer's");
    for (const Dim& dim : stage.store->index) check_scope(dim, scope);
  }

  const Buffer& buffer_at(int index) const {
    require(index >= 0 && static_cast<size_t>(index) < kernel_.buffers.size(),
            "a buffer number out of range");
    return kernel_.buffers[static_cast<size_t>(index)];
  }

  void check_expression(const Expr& expression, const VariableNames& scope) const {
    visit(expression, [&](const Expr& node) {
      for (const Dim& dim : node->index) check_scope(dim, scope);
      if (node->kind == ExprNode::Kind::kLoad) {
        const Buffer& buffer = buffer_at(node->buffer);
        require(node->index.size() == buffer.type.rank(),
                fmt::format("the rank of a load of '{}' differs from the buffer's", buffer.name));
        require(node->dtype == arithmetic_dtype(buffer.type.dtype),
                fmt::format("the dtype of a load of '{}' differs from the buffer's", buffer.name));
      }
      if (node->kind == ExprNode::Kind::kLocal) check_local(*node);
    });
  }

  void check_local(const ExprNode& node) const {
    require(node.stage >= 0 && static_cast<size_t>(node.stage) < stage_, "a local of a later stage");
    const Stage& source = kernel_.stages[static_cast<size_t>(node.stage)];
    require(!source.store, "a local of a stage that stores");
    require(node.index.size() == source.loops.size(), "the rank of a local's index differs from its stage's");
    require(node.dtype == source.value->dtype, "the dtype of a local differs from its stage's");
  }

  const Kernel& kernel_;
  VariableNames local_names_;
  size_t stage_ = SIZE_MAX;
};

}  // namespace

void verify(const Kernel& kernel) { Verifier(kernel).run(); }

}  // namespace ingot::core::loops
