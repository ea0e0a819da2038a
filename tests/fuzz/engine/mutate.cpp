// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/engine/mutate.h"

#include <algorithm>
#include <functional>

#include "support/error.h"
#include "tests/fuzz/engine/choices.h"

namespace ingot::core::fuzz {
namespace {

class Mutator : Choices {
 public:
  Mutator(EngineData& engine, std::minstd_rand& random) : Choices(random), engine_(engine) {}

  void run() {
    if (below(5) == 0) return change_tables();
    Program* program = below(8) == 0 ? &engine_.init : &engine_.main;
    while (!program->nested.empty() && below(2) == 0)
      program = &program->nested[below(program->nested.size())];
    change(*program);
  }

 private:
  BufferId buffer_of(const Program& program) {
    return below(16) == 0 ? kNoId : static_cast<BufferId>(below(program.buffers.size() + (below(16) == 0)));
  }

  Dim dim(const Program& program, int depth = 0) {
    if (depth < 3 && below(3) == 0) {
      const auto kind = static_cast<Dim::Kind>(2 + below(6));
      return combine(kind, dim(program, depth + 1), dim(program, depth + 1));
    }
    if (!program.symbols.empty() && below(2) == 0)
      return Dim::symbol(
          std::next(program.symbols.begin(), static_cast<long>(below(program.symbols.size())))->first);
    return number<int64_t>(4);
  }

  // Permutations, blocks, and layouts that resemble them.
  void change(Layout& layout, size_t rank) {
    if (layout.axes.empty() && below(3) > 0) {
      for (size_t i = 0; i < rank; ++i) layout.axes.push_back({static_cast<int32_t>(i)});
    }
    LayoutAxis* axis = any(layout.axes);
    switch (below(6)) {
      case 0:
        layout.axes.clear();
        return;
      case 1:
        if (axis != nullptr) std::swap(*axis, *any(layout.axes));
        return;
      case 2: {
        const auto dim = static_cast<int32_t>(below(rank + 1));
        layout.axes.push_back({dim, 1, 4});
        if (LayoutAxis* outer = any(layout.axes); outer->dim == dim) outer->divisor = 4;
        return;
      }
      case 3:
        if (axis != nullptr) axis->divisor = number(axis->divisor);
        return;
      case 4:
        if (axis != nullptr) axis->modulus = number(axis->modulus);
        return;
      default:
        if (axis != nullptr) axis->dim = static_cast<int32_t>(below(rank));
    }
  }

  void change(TensorType& type, const Program& program) {
    if (below(4) == 0) return change(type.layout, type.rank());
    switch (below(4)) {
      case 0:
        type.dtype = static_cast<DType>(1 + below(19));
        return;
      case 1:
        type.shape.push_back(dim(program));
        return;
      case 2:
        if (!type.shape.empty()) type.shape.pop_back();
        return;
      default:
        if (Dim* size = any(type.shape)) *size = dim(program);
    }
  }

  void change(Buffer& buffer, const Program& program) {
    if (below(12) == 0) {
      buffer.place = {static_cast<Place::Kind>(below(2)), static_cast<uint8_t>(below(3))};
      return;
    }
    switch (below(4)) {
      case 0:
        buffer.storage = storage(program);
        return;
      case 1:
      case 2:
        std::visit([&](auto& storage) { change(storage, program); }, buffer.storage);
        return;
      default:
        change(buffer.type, program);
    }
  }

  Storage storage(const Program& program) {
    const Storage kinds[] = {InputStorage{},
                             OutputStorage{},
                             WeightStorage{},
                             ConstantStorage{},
                             StateStorage{},
                             ArenaStorage{.bytes = dim(program), .above = {}},
                             AliasStorage{buffer_of(program), dim(program)},
                             DynamicStorage{}};
    return kinds[below(std::size(kinds))];
  }

  template <typename Port>
    requires requires(Port port) { port.index; }
  void change(Port& port, const Program&) {
    port.index = number(port.index);
  }
  template <typename Entry>
    requires requires(Entry entry) { entry.id; }
  void change(Entry& entry, const Program&) {
    entry.id = number(entry.id);
  }
  void change(ArenaStorage& arena, const Program& program) {
    switch (below(3)) {
      case 0:
        arena.above.push_back(buffer_of(program));
        return;
      case 1:
        if (!arena.above.empty()) arena.above.pop_back();
        return;
      default:
        arena.bytes = dim(program);
    }
  }
  void change(AliasStorage& alias, const Program& program) {
    if (below(2) == 0)
      alias.of = buffer_of(program);
    else
      alias.offset = dim(program);
  }
  void change(DynamicStorage&, const Program&) {}

  void change_use(Step& step, const Program& program) {
    BufferUse* use = any(step.uses);
    switch (below(4)) {
      case 0:
        step.uses.push_back({buffer_of(program), below(2) == 0, below(2) == 0});
        return;
      case 1:
        if (use != nullptr) step.uses.erase(step.uses.begin() + (use - step.uses.data()));
        return;
      default:
        if (use != nullptr)
          *use = {buffer_of(program), below(2) == 0 || use->reads, below(2) == 0 && use->writes};
    }
  }

  RoutineStep routine() {
    static const std::vector<std::string> kRoutines = {
        "gru", "lstm", "scatter_add", "scatter_reduce", "sort", "top_k", "median", "kth_value", ""};
    static const std::vector<NamedValues> kAttributes = {
        {{"axis", 0}, {"descending", true}},
        {{"axis", 1}, {"largest", false}},
        {{"axis", -1}},
        {{"axis", 1}, {"rank", 1}},
        {{"axis", "0"}, {"descending", None{}}},
        {{"axis", 0}, {"reduce", "mean"}, {"include_self", true}},
        {}};
    return {kRoutines[below(kRoutines.size())], kAttributes[below(kAttributes.size())]};
  }

  uint32_t nested_of(const Program& program) {
    return static_cast<uint32_t>(below(program.nested.size() + 1));
  }

  Action action(const Program& program) {
    const Action kinds[] = {KernelStep{"null", {.image = 0}}, routine(), CopyStep{},
                            BranchStep{nested_of(program), nested_of(program)}, LoopStep{nested_of(program)}};
    return kinds[below(std::size(kinds))];
  }

  void change(KernelStep& kernel, const Program& program) {
    Launch& launch = kernel.launch;
    switch (below(5)) {
      case 0:
        launch.image = number(launch.image);
        return;
      case 1:
        launch.symbols.push_back(dim(program));
        return;
      case 2:
        launch.sizes.push_back(dim(program));
        return;
      case 3:
        launch.constants.push_back(number(0));
        return;
      default:
        if (Dim* size = any(launch.sizes)) *size = dim(program);
    }
  }
  void change(RoutineStep& step, const Program&) { step = routine(); }
  void change(CopyStep&, const Program&) {}
  void change(BranchStep& branch, const Program& program) {
    (below(2) == 0 ? branch.then : branch.otherwise) = nested_of(program);
  }
  void change(LoopStep& loop, const Program& program) { loop.body = nested_of(program); }

  void change(Step& step, const Program& program) {
    switch (below(12)) {
      case 0:
      case 1:
        step.action = action(program);
        return;
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
        std::visit([&](auto& action) { change(action, program); }, step.action);
        return;
      case 7:
        step.binds.push_back({below(2) == 0 ? "S" : "late", buffer_of(program), dim(program)});
        return;
      default:
        change_use(step, program);
    }
  }

  void change_order(Program& program) {
    Step* step = any(program.steps);
    if (step == nullptr) return;
    const auto at = program.steps.begin() + (step - program.steps.data());
    switch (below(3)) {
      case 0:
        program.steps.erase(at);
        return;
      case 1:
        program.steps.insert(at, Step(*step));
        return;
      default:
        std::swap(*step, *any(program.steps));
    }
  }

  void change_ports(Program& program) {
    std::vector<Port>* const lists[] = {&program.inputs, &program.outputs, &program.states};
    std::vector<Port>& ports = *lists[below(3)];
    Port* port = any(ports);
    if (port == nullptr || below(3) == 0) {
      ports.push_back({"added", {DType::kF32, {dim(program)}, {}}, buffer_of(program)});
    } else if (below(2) == 0) {
      port->buffer = buffer_of(program);
    } else {
      change(port->type, program);
      if (port->buffer < program.buffers.size()) program.buffers[port->buffer].type = port->type;
    }
  }

  // Replaces a buffer of a step by a new one, or by another buffer of the same kind.
  void add_buffer(Program& program) {
    const auto id = static_cast<BufferId>(program.buffers.size());
    if (below(2) == 0 || program.buffers.empty()) {
      program.buffers.push_back({.name = "added",
                                 .type = {DType::kF32, {dim(program)}, {}},
                                 .storage = ArenaStorage{.bytes = 64, .above = {}}});
      return;
    }
    const auto original = static_cast<BufferId>(below(program.buffers.size()));
    program.buffers.push_back(Buffer(program.buffers[original]));
    if (below(2) == 0) change(program.buffers.back().type, program);
    for (Step& step : program.steps) {
      for (BufferUse& use : step.uses) {
        if (use.buffer == original && below(2) == 0) use.buffer = id;
      }
    }
  }

  void change(Program& program) {
    Buffer* buffer = any(program.buffers);
    Step* step = any(program.steps);
    switch (below(8)) {
      case 0:
        return change_order(program);
      case 1:
        return change_ports(program);
      case 2:
        program.symbols[below(2) == 0 ? "S" : "late"].range = {number<int64_t>(1), number<int64_t>(8)};
        return;
      case 3:
        add_buffer(program);
        return;
      case 4:
      case 5:
        if (buffer != nullptr) change(*buffer, program);
        return;
      default:
        if (step != nullptr) change(*step, program);
    }
  }

  void change(WeightData& weight) {
    switch (below(5)) {
      case 0:
        weight.origin = FromConstant{};
        return;
      case 1:
        weight.origin = FromSource{number(0U)};
        return;
      case 2:
        weight.origin = FromInit{number(0U)};
        return;
      case 3:
        weight.bytes = number(weight.bytes);
        return;
      default:
        weight.type.shape.push_back(number<int64_t>(1));
        weight.bytes *= 2;
    }
  }

  Predicate condition(int depth = 0) {
    if (depth < 3 && below(3) == 0) {
      Predicate a = condition(depth + 1), b = condition(depth + 1);
      return below(2) == 0 ? both(std::move(a), std::move(b)) : either(std::move(a), std::move(b));
    }
    return compare(static_cast<Predicate::Kind>(below(4)), dim(engine_.main), dim(engine_.main));
  }

  void change_tables() {
    Signature& signature = engine_.signature;
    switch (below(9)) {
      case 0:
        if (WeightData* weight = any(engine_.weights)) change(*weight);
        return;
      case 1:
        if (SourceWeight* source = any(engine_.sources)) source->shape.push_back(number<int64_t>(1));
        return;
      case 2:
        if (Tensor* state = any(engine_.state_values)) state->shape.push_back(number<int64_t>(1));
        return;
      case 3:
        if (auto* input = any(signature.mutated_inputs)) *input = number(0U);
        return;
      case 4:
        signature.inputs.insert(
            signature.inputs.begin() + static_cast<long>(below(signature.inputs.size() + 1)),
            below(2) == 0 ? CallSlot(TensorSlot{}) : CallSlot(PlainValue(None{})));
        return;
      case 5:
        engine_.checks.push_back({static_cast<CheckKind>(below(3)), condition(), "mutated", {}, {}});
        return;
      case 6:
        if (SizeCheck* check = any(engine_.checks)) check->condition = condition();
        return;
      case 7:
        if (CallSlot* slot = any(below(2) == 0 ? signature.inputs : signature.outputs))
          *slot = TensorSlot{.is_number = below(2) == 0};
        return;
      default:
        engine_.weights_form = static_cast<WeightsForm>(below(2));
    }
  }

  EngineData& engine_;
};

}  // namespace

void mutate(EngineData& engine, std::minstd_rand& random) {
  try {
    Mutator(engine, random).run();
  } catch (const Error&) {  // sizes that overflow
  }
}

}  // namespace ingot::core::fuzz
