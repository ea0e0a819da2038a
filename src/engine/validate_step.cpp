// SPDX-License-Identifier: Apache-2.0
#include "engine/validate_step.h"

#include <algorithm>

#include <fmt/core.h>

#include "engine/group_uses.h"
#include "support/error.h"
#include "types/layout_rules.h"

namespace ingot::core {
namespace {

const TensorType* type_of(const Program& program, BufferId id) {
  return id == kNoId ? nullptr : &program.buffers[id].type;
}

bool is_scalar(const TensorType* type, DType dtype) {
  return type != nullptr && type->dtype == dtype && type->rank() == 0;
}

void check_kernel(const Program& program, const Step& step, const KernelStep& kernel, size_t images) {
  require(kernel.launch.image < images, step.name, "runs a kernel binary that the engine lacks");
  require(!kernel.backend.empty(), step.name, "names no backend");
  for (const BufferUse& use : step.uses)
    require(use.buffer < program.buffers.size(), step.name, "lacks an argument");
}

void check_copy(const Program& program, const Step& step) {
  const bool two = step.uses.size() == 2 && step.uses[0].buffer != kNoId && step.uses[1].buffer != kNoId;
  require(two && step.uses[0].reads && step.uses[1].writes, step.name, "does not copy one buffer to another");
  const TensorType& from = program.buffers[step.uses[0].buffer].type;
  const TensorType& to = program.buffers[step.uses[1].buffer].type;
  require(from.dtype == to.dtype && from.layout == to.layout, step.name, "copies between two types");
}

// Routines see dense row-major tensors, and may read an operand after they have begun to write.
void check_routine(const Program& program, const Step& step, const RoutineStep& routine, size_t images) {
  require(!routine.routine.empty(), step.name, "lacks the name of a routine");
  require(routine.image == kNoId || routine.image < images, step.name,
          "runs a kernel binary that the engine lacks");
  require(routine.with_next == kNoId || routine.with_next < images, step.name,
          "does the next step by a kernel binary that the engine lacks");
  require(routine.image == kNoId || is_device_collective(step), step.name,
          "has a kernel binary but is not a collective of GPUs");
  const auto root_of = [&](const BufferUse& use) {
    return use.buffer == kNoId ? kNoId : root_buffer(program, use.buffer);
  };
  for (const BufferUse& use : step.uses) {
    if (use.buffer == kNoId) continue;
    require(program.buffers[use.buffer].type.layout.is_row_major(), step.name,
            "is a routine with an operand that is not row-major");
    const auto shared = std::ranges::count(step.uses, root_of(use), root_of);
    require(!use.writes || shared == 1, step.name, "is a routine that writes memory of another operand");
  }
}

// Argument `use` of `step` is bound to `port` of a nested program.
void check_binding(const Program& program, const Step& step, size_t use, const Port& port, bool is_output) {
  require(use < step.uses.size(), step.name, "lacks arguments for its nested program");
  const BufferUse& argument = step.uses[use];
  const TensorType* type = type_of(program, argument.buffer);
  require(type != nullptr && *type == port.type, step.name, "differs from its nested program in a type");
  require(is_output ? argument.writes : argument.reads, step.name,
          "declares an argument's use differently from its nested program");
}

const Program& nested_program(const Program& program, const Step& step, uint32_t id) {
  require(id < program.nested.size(), step.name, "runs a nested program that does not exist");
  return program.nested[id];
}

void check_branch(const Program& program, const Step& step) {
  require(!step.uses.empty(), step.name, "lacks a condition");
  require(is_scalar(type_of(program, step.uses[0].buffer), DType::kBool), step.name,
          "has a condition that is not a bool");
  for (const uint32_t id : step.nested()) {
    const Program& branch = nested_program(program, step, id);
    const size_t inputs = branch.inputs.size();
    require(step.uses.size() == 1 + inputs + branch.outputs.size(), step.name,
            "differs from its branch in arguments");
    for (size_t i = 0; i < inputs; ++i) check_binding(program, step, 1 + i, branch.inputs[i], false);
    for (size_t i = 0; i < branch.outputs.size(); ++i) {
      check_binding(program, step, 1 + inputs + i, branch.outputs[i], true);
    }
  }
}

void check_loop(const Program& program, const Step& step, const LoopStep& loop) {
  require(step.uses.size() >= 2, step.name, "lacks a trip count and a condition");
  const Program& body = nested_program(program, step, loop.body);
  const bool ports =
      !body.outputs.empty() && !body.inputs.empty() && body.inputs.size() >= body.outputs.size();
  require(ports, step.name, "has a body without iteration or condition");
  require(is_scalar(&body.inputs[0].type, DType::kI64) && is_scalar(&body.outputs[0].type, DType::kBool),
          step.name, "has a body whose iteration is not an i64 or whose condition is not a bool");
  const TensorType* trips = type_of(program, step.uses[0].buffer);
  const TensorType* condition = type_of(program, step.uses[1].buffer);
  require(trips == nullptr || is_scalar(trips, DType::kI64), step.name,
          "has a trip count that is not an i64");
  require(condition == nullptr || is_scalar(condition, DType::kBool), step.name,
          "has a condition that is not a bool");
  require(trips != nullptr || condition != nullptr, step.name, "has neither a trip count nor a condition");
  const size_t inputs = body.inputs.size() - 1;
  const size_t carried = body.outputs.size() - 1;
  require(step.uses.size() == 2 + inputs + carried, step.name, "differs from its body in arguments");
  for (size_t i = 0; i < inputs; ++i) check_binding(program, step, 2 + i, body.inputs[1 + i], false);
  for (size_t i = 0; i < carried; ++i) {
    check_binding(program, step, 2 + inputs + i, body.outputs[1 + i], true);
    require(body.outputs[1 + i].type == body.inputs[1 + i].type, step.name,
            "changes the type of a carried value");
  }
}

struct ActionRules {
  const Program& program;
  const Step& step;
  const SymbolNames& symbols;
  size_t images;

  void operator()(const KernelStep& kernel) const {
    for (const auto* dims : {&kernel.launch.symbols, &kernel.launch.sizes}) {
      for (const Dim& dim : *dims) symbols.require_known(dim, step.name);
    }
    check_kernel(program, step, kernel, images);
  }
  void operator()(const RoutineStep& routine) const { check_routine(program, step, routine, images); }
  void operator()(CopyStep) const { check_copy(program, step); }
  void operator()(BranchStep) const { check_branch(program, step); }
  void operator()(const LoopStep& loop) const { check_loop(program, step, loop); }
};

}  // namespace

void require(bool condition, std::string_view name, std::string_view rule) {
  if (condition) [[likely]]
    return;
  throw UserError("INGOT-U206",
                  fmt::format("the engine's program is broken: '{}' {}", name.substr(0, 200), rule),
                  "rebuild the engine; if this version of Ingot built it, report a bug");
}

void check_layout(const TensorType& type, std::string_view what) {
  require(is_bijection(type.layout, type.rank()), what, "has a layout that is not a bijection");
}

void SymbolNames::require_known(const Dim& dim, std::string_view user) const {
  if (dim.is_constant()) return;
  for (const std::string& symbol : dim.symbols())
    require(has(symbol), user, "uses the symbol " + symbol + " before it is bound");
}

void check_step(const Program& program, const Step& step, const SymbolNames& symbols, size_t images) {
  for (const BufferUse& use : step.uses) {
    require(use.buffer == kNoId || use.buffer < program.buffers.size(), step.name,
            "uses a buffer that does not exist");
    require(use.buffer != kNoId || !use.writes, step.name, "writes an absent argument");
  }
  for (const SymbolBinding& binding : step.binds) {
    require(binding.buffer < program.buffers.size(), step.name,
            "binds a symbol to a buffer that does not exist");
    const TensorType& type = program.buffers[binding.buffer].type;
    require(is_scalar(&type, DType::kI64), step.name, "binds a symbol to a buffer that is not an i64 scalar");
    require(!symbols.has(binding.symbol), step.name, "binds a symbol twice");
    symbols.require_known(binding.limit, step.name);
  }
  std::visit(ActionRules{program, step, symbols, images}, step.action);
}

}  // namespace ingot::core
