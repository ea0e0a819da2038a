// SPDX-License-Identifier: Apache-2.0
#include "loops/interpreter.h"

#include <memory>
#include <unordered_map>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "loops/functions.h"
#include "loops/index_program.h"
#include "loops/rewrite.h"
#include "loops/scalar.h"
#include "support/error.h"

namespace ingot::core::loops {
namespace {

// A buffer as rows of elements: int4 rows start at byte boundaries.
struct Memory {
  const Buffer* buffer;
  std::byte* data;
  std::vector<int64_t> shape;    // logical
  std::vector<int64_t> storage;  // extents of the storage axes
  std::vector<LayoutAxis> axes;
  TensorView row;  // of one row; `data` is set at each access

  void locate(std::span<const int64_t> index) {
    int64_t outer = 0, column = 0;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      const int64_t divided = index[static_cast<size_t>(axes[axis].dim)] / axes[axis].divisor;
      outer = axis == 0 ? 0 : outer * storage[axis - 1] + column;
      column = axes[axis].modulus == 0 ? divided : divided % axes[axis].modulus;
    }
    row.data = data + outer * row_bytes(row.dtype, row.shape[0]);
    element = column;
  }
  int64_t element = 0;
};

// One expression node, its operands and indices resolved.
struct Step {
  const ExprNode* node;
  std::vector<int> operands;
  std::vector<IndexProgram> index;
  uint64_t computed_at = 0;  // the point for which `value` is valid
  Scalar value;
};

struct CompiledLoop {
  int slot;
  IndexProgram extent;
};

struct CompiledBinding {
  int value;
  int slot;
  IndexProgram limit;
  bool inner;  // depends on the reduction's variables
};

struct CompiledStage {
  const Stage* stage;
  std::vector<CompiledLoop> loops, reduce;
  std::vector<CompiledBinding> bindings;
  int value;
  std::vector<IndexProgram> store;
  std::vector<Scalar> local;     // of a stage that does not store
  std::vector<int64_t> extents;  // of `loops`
};

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, std::span<const TensorView> buffers, const SymbolValues& symbols)
      : kernel_(kernel) {
    for (const Loop& loop : kernel.parallel) parallel_.push_back(compile(loop));
    for (const Stage& stage : kernel.stages) stages_.push_back(compile(stage));
    bind_symbols(symbols);
    for (size_t i = 0; i < kernel.buffers.size(); ++i)
      memories_.push_back(bind(kernel.buffers[i], buffers[i], symbols));
    for (CompiledStage& stage : stages_) {
      int64_t points = 1;
      for (const CompiledLoop& loop : stage.loops) {
        stage.extents.push_back(loop.extent.run(values_));
        points *= stage.extents.back();
      }
      if (!stage.stage->store) stage.local.resize(static_cast<size_t>(points));
    }
  }

  KernelStatus run() {
    for_each_point(parallel_, [&] {
      for (CompiledStage& stage : stages_) run_stage(stage);
    });
    return status_;
  }

  KernelStatus run(std::span<const int64_t> points) {
    for (int64_t rest : points) {
      for (size_t i = parallel_.size(); i-- > 0;) {
        const int64_t extent = parallel_[i].extent.run(values_);
        values_[static_cast<size_t>(parallel_[i].slot)] = rest % extent;
        rest /= extent;
      }
      for (CompiledStage& stage : stages_) run_stage(stage);
    }
    return status_;
  }

 private:
  CompiledLoop compile(const Loop& loop) {
    return {slots_.slot(loop.variable), IndexProgram(loop.extent, slots_)};
  }

  std::vector<IndexProgram> compile(const std::vector<Dim>& index) {
    std::vector<IndexProgram> programs;
    for (const Dim& dim : index) programs.emplace_back(dim, slots_);
    return programs;
  }

  int compile(const Expr& expression) {
    visit(expression, [&](const Expr& node) {
      if (numbers_.contains(node.get())) return;
      Step step{.node = node.get(), .index = compile(node->index)};
      for (const Expr& operand : node->operands) step.operands.push_back(numbers_.at(operand.get()));
      numbers_.emplace(node.get(), static_cast<int>(steps_.size()));
      steps_.push_back(std::move(step));
    });
    return numbers_.at(expression.get());
  }

  CompiledStage compile(const Stage& stage) {
    CompiledStage compiled{.stage = &stage, .value = compile(stage.value)};
    for (const Loop& loop : stage.loops) compiled.loops.push_back(compile(loop));
    for (const Loop& loop : stage.reduce) compiled.reduce.push_back(compile(loop));
    for (const Binding& binding : stage.bindings) {
      bool inner = false;
      for (const Loop& loop : stage.reduce) inner = inner || uses_symbol(binding.value, loop.variable);
      for (size_t i = 0; i < compiled.bindings.size(); ++i) {
        inner = inner || (compiled.bindings[i].inner && uses_symbol(binding.value, stage.bindings[i].symbol));
      }
      compiled.bindings.push_back(
          {compile(binding.value), slots_.slot(binding.symbol), IndexProgram(binding.limit, slots_), inner});
    }
    if (stage.store) compiled.store = compile(stage.store->index);
    return compiled;
  }

  void bind_symbols(const SymbolValues& symbols) {
    values_.assign(slots_.size(), 0);
    for (const std::string& name : free_symbols(kernel_)) {
      const auto found = symbols.find(name);
      invariant(found != symbols.end(),
                fmt::format("kernel '{}' needs a value for symbol '{}'", kernel_.name, name));
      if (slots_.numbers().contains(name)) values_[static_cast<size_t>(slots_.slot(name))] = found->second;
    }
  }

  static Memory bind(const Buffer& buffer, const TensorView& view, const SymbolValues& symbols) {
    Memory memory{.buffer = &buffer, .data = view.data, .axes = buffer.type.layout.axes};
    for (const Dim& dim : buffer.type.shape) memory.shape.push_back(evaluate(dim, symbols));
    for (const Dim& dim : storage_shape(buffer.type.layout, buffer.type.shape))
      memory.storage.push_back(evaluate(dim, symbols));
    for (size_t i = memory.axes.size(); i < memory.storage.size(); ++i)
      memory.axes.push_back({static_cast<int32_t>(i)});
    const int64_t columns = memory.storage.empty() ? 1 : memory.storage.back();
    memory.row = {.dtype = buffer.type.dtype, .shape = {columns}, .strides = {1}};
    return memory;
  }

  template <typename Function>
  void for_each_point(const std::vector<CompiledLoop>& loops, const Function& function, size_t depth = 0) {
    if (depth == loops.size()) return function();
    const int64_t extent = loops[depth].extent.run(values_);
    for (int64_t i = 0; i < extent; ++i) {
      values_[static_cast<size_t>(loops[depth].slot)] = i;
      for_each_point(loops, function, depth + 1);
    }
  }

  void run_stage(CompiledStage& stage) {
    const DType dtype = stage.stage->value->dtype;
    size_t point = 0;
    Scalar running;
    for_each_point(stage.loops, [&] {
      const bool starts = !stage.stage->scan || values_[static_cast<size_t>(stage.loops.back().slot)] == 0;
      if (starts && stage.stage->combine != Combine::kNone)
        running = identity_of(stage.stage->combine, dtype);
      ++point_;
      run_bindings(stage, false);
      for_each_point(stage.reduce, [&] {
        ++point_;
        run_bindings(stage, true);
        const Scalar value = evaluate_step(stage.value);
        running = stage.stage->combine == Combine::kNone
                      ? value
                      : combine(stage.stage->combine, dtype, running, value);
      });
      const Scalar result = is_floating(dtype) ? Scalar{.number = round_to(dtype, running.number)} : running;
      if (stage.stage->store) {
        store(stage, result);
      } else {
        stage.local[point] = result;
      }
      ++point;
    });
  }

  // Sums and products of f32 are accumulated in double, so that the oracle does not depend on their order.
  static Scalar combine(Combine combine, DType dtype, Scalar a, Scalar b) {
    return apply(binary_of(combine), dtype == DType::kF32 ? DType::kF64 : dtype, a, b);
  }

  void run_bindings(const CompiledStage& stage, bool inner) {
    for (const CompiledBinding& binding : stage.bindings) {
      if (binding.inner != inner) continue;
      int64_t value = evaluate_step(binding.value).integer;
      if (value < 0 || value >= binding.limit.run(values_)) {
        status_ = KernelStatus::kIndexOutOfRange;
        value = 0;
      }
      values_[static_cast<size_t>(binding.slot)] = value;
    }
  }

  std::span<const int64_t> evaluate_index(const std::vector<IndexProgram>& programs) {
    index_.clear();
    for (const IndexProgram& program : programs) index_.push_back(program.run(values_));
    return index_;
  }

  Memory& locate(int buffer, const std::vector<IndexProgram>& programs) {
    Memory& memory = memories_[static_cast<size_t>(buffer)];
    const auto index = evaluate_index(programs);
    for (size_t i = 0; i < index.size(); ++i) {
      if (index[i] < 0 || index[i] >= memory.shape[i]) {
        throw InternalError(fmt::format("kernel '{}' uses element [{}] of '{}', whose shape is [{}]\n{}",
                                        kernel_.name, fmt::join(index, ", "), memory.buffer->name,
                                        fmt::join(memory.shape, ", "), to_string(kernel_)));
      }
    }
    memory.locate(index);
    return memory;
  }

  void store(const CompiledStage& stage, Scalar value) {
    const Memory& memory = locate(stage.stage->store->buffer, stage.store);
    if (is_floating(memory.row.dtype)) return write_double(memory.row, {&memory.element, 1}, value.number);
    write_integer(memory.row, {&memory.element, 1}, value.integer);
  }

  Scalar load(const Step& step) {
    const Memory& memory = locate(step.node->buffer, step.index);
    if (is_floating(memory.row.dtype)) return {.number = read_double(memory.row, {&memory.element, 1})};
    return {.integer = read_integer(memory.row, {&memory.element, 1})};
  }

  Scalar read_local(const Step& step) {
    const CompiledStage& source = stages_[static_cast<size_t>(step.node->stage)];
    int64_t offset = 0;
    const auto index = evaluate_index(step.index);
    for (size_t i = 0; i < index.size(); ++i) {
      invariant(index[i] >= 0 && index[i] < source.extents[i],
                fmt::format("kernel '{}' reads past the end of row '{}'", kernel_.name, source.stage->name));
      offset = offset * source.extents[i] + index[i];
    }
    return source.local[static_cast<size_t>(offset)];
  }

  Scalar evaluate_step(int number) {
    Step& step = steps_[static_cast<size_t>(number)];
    if (step.computed_at == point_) return step.value;
    const Scalar value = compute(step);
    step.computed_at = point_;
    return step.value = value;
  }

  Scalar compute(const Step& step) {
    const ExprNode& node = *step.node;
    const auto operand = [&](size_t i) { return evaluate_step(step.operands[i]); };
    switch (node.kind) {
      case ExprNode::Kind::kConstant:
        return {.number = node.number, .integer = node.integer};
      case ExprNode::Kind::kIndex:
        return {.integer = step.index[0].run(values_)};
      case ExprNode::Kind::kLoad:
        return load(step);
      case ExprNode::Kind::kLocal:
        return read_local(step);
      case ExprNode::Kind::kUnary:
        return apply(node.unary, node.dtype, operand(0));
      case ExprNode::Kind::kFunction:
        return {.number = round_to(node.dtype, node.function->evaluate(operand(0).number))};
      case ExprNode::Kind::kBinary:
        return apply(node.binary, node.operands[0]->dtype, operand(0), operand(1));
      case ExprNode::Kind::kSelect:
        return operand(operand(0).integer != 0 ? 1 : 2);
      case ExprNode::Kind::kConvert:
        return convert_scalar(operand(0), node.operands[0]->dtype, node.dtype);
      case ExprNode::Kind::kBitcast:
        return bitcast_scalar(operand(0), node.operands[0]->dtype, node.dtype);
      case ExprNode::Kind::kFma:
        return fma_scalar(node.dtype, operand(0), operand(1), operand(2));
    }
    throw InternalError("unknown kind of expression");
  }

  const Kernel& kernel_;
  Slots slots_;
  std::vector<int64_t> values_;  // by slot
  std::vector<CompiledLoop> parallel_;
  std::vector<CompiledStage> stages_;
  std::vector<Step> steps_;
  std::unordered_map<const ExprNode*, int> numbers_;
  std::vector<Memory> memories_;
  std::vector<int64_t> index_;
  uint64_t point_ = 0;
  KernelStatus status_ = KernelStatus::kOk;
};

}  // namespace

namespace {

void require_buffers(const Kernel& kernel, std::span<const TensorView> buffers) {
  invariant(buffers.size() == kernel.buffers.size(),
            fmt::format("kernel '{}' has {} buffers, but got {}", kernel.name, kernel.buffers.size(),
                        buffers.size()));
}

}  // namespace

KernelStatus interpret(const Kernel& kernel, std::span<const TensorView> buffers,
                       const SymbolValues& symbols) {
  require_buffers(kernel, buffers);
  return Interpreter(kernel, buffers, symbols).run();
}

KernelStatus interpret_points(const Kernel& kernel, std::span<const TensorView> buffers,
                              const SymbolValues& symbols, std::span<const int64_t> points) {
  require_buffers(kernel, buffers);
  return Interpreter(kernel, buffers, symbols).run(points);
}

}  // namespace ingot::core::loops
