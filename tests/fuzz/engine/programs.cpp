// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/engine/programs.h"

#include "tests/engine/programs.h"

namespace ingot::core::fuzz {
namespace {

using namespace testing;

const TensorType kCount{DType::kI64, {}, {}};
const TensorType kFlag{DType::kBool, {}, {}};

TensorType i64(Shape shape) { return {DType::kI64, std::move(shape), {}}; }

Step nesting_step(Action action, std::vector<BufferUse> uses) {
  return {.name = "nested", .action = std::move(action), .uses = std::move(uses)};
}

Step routine_step(std::string routine, NamedValues attributes, std::vector<BufferUse> uses) {
  return {.name = routine, .action = RoutineStep{routine, std::move(attributes)}, .uses = std::move(uses)};
}

EngineData engine_of(std::string name, Program main) {
  EngineData engine{.name = std::move(name), .key = "key", .target = "null"};
  engine.images.push_back({.kernel = "k", .target = "null", .code = {std::byte{}}});
  for (const Port& state : main.states) {
    std::vector<int64_t> shape;
    for (const Dim& dim : state.type.shape) shape.push_back(dim.constant().value_or(1));
    engine.state_values.push_back({nullptr, state.type.dtype, std::move(shape)});
  }
  engine.main = std::move(main);
  return engine;
}

// Copies its input by way of the arena.
Program copying(const std::string& name) {
  Program program{.name = name};
  const TensorType type = f32({Dim::symbol("S")});
  const BufferId x = add_input(program, "x", type), t = add_buffer(program, "t", type, ArenaStorage{});
  const BufferId y = add_output(program, "y", type);
  program.steps = {copy_step(x, t), copy_step(t, y)};
  return program;
}

Program branching() {
  Program main{.name = "main"};
  main.symbols = {{"S", {.range = {1, 16}, .typical = 4}}};
  const TensorType type = f32({Dim::symbol("S")});
  const BufferId flag = add_input(main, "flag", kFlag), x = add_input(main, "x", type);
  const BufferId y = add_output(main, "y", type);
  main.nested = {copying("then"), copying("else")};
  main.steps = {nesting_step(BranchStep{0, 1}, {{flag, true, false}, {x, true, false}, {y, false, true}})};
  return main;
}

Program looping() {
  Program body{.name = "body"};
  add_input(body, "i", kCount);
  const BufferId v = add_input(body, "v", f32({4})), go_on = add_output(body, "go_on", kFlag);
  const BufferId next = add_output(body, "next", f32({4}));
  const BufferId yes = add_buffer(body, "yes", kFlag, ArenaStorage{});
  body.steps = {kernel_step("k", {v}, {yes}), copy_step(yes, go_on), copy_step(v, next)};
  Program main{.name = "main"};
  const BufferId count = add_input(main, "n", kCount), x = add_input(main, "x", f32({4}));
  const BufferId y = add_output(main, "y", f32({4}));
  main.nested = {body};
  main.steps = {nesting_step(
      LoopStep{0}, {{count, true, false}, {kNoId, false, false}, {x, true, false}, {y, false, true}})};
  return main;
}

Program sorting() {
  Program main{.name = "main"};
  const BufferId x = add_input(main, "x", f32({4, 3})), y = add_output(main, "y", f32({2, 3}));
  const BufferId places = add_output(main, "places", i64({2, 3}));
  main.steps = {routine_step("top_k", {{"axis", 0}, {"largest", true}},
                             {{x, true, false}, {y, false, true}, {places, false, true}})};
  return main;
}

Program scattering() {
  Program main{.name = "main"};
  const BufferId x = add_input(main, "x", f32({4, 3})), places = add_input(main, "places", i64({2, 3}));
  const BufferId source = add_input(main, "source", f32({2, 3})), y = add_output(main, "y", f32({4, 3}));
  main.steps = {
      routine_step("scatter_reduce", {{"axis", 0}, {"reduce", "mean"}, {"include_self", true}},
                   {{x, true, false}, {places, true, false}, {source, true, false}, {y, false, true}})};
  return main;
}

Program recurring() {
  Program main{.name = "main"};
  const BufferId gates = add_input(main, "gates", f32({2, 3, 12})),
                 hidden = add_input(main, "h", f32({1, 3, 4}));
  const BufferId weight = add_input(main, "w", f32({1, 1, 4, 3, 16}));
  const BufferId y = add_output(main, "y", f32({2, 3, 4})), last = add_output(main, "last", f32({1, 3, 4}));
  main.steps = {routine_step("gru", {},
                             {{gates, true, false},
                              {hidden, true, false},
                              {weight, true, false},
                              {y, false, true},
                              {last, false, true}})};
  return main;
}

// A size that the first step computes, a state, and a part of a buffer.
Program late() {
  Program main{.name = "main"};
  main.symbols = {{"S", {.range = {1, 16}, .typical = 4}}, {"N", {.range = {0, 16}}}};
  const Dim s = Dim::symbol("S"), n = Dim::symbol("N");
  const BufferId x = add_input(main, "x", f32({s})), count = add_input(main, "count", kCount);
  const BufferId k = add_buffer(main, "k", f32({4}), StateStorage{0});
  main.states.push_back({"k", f32({4}), k});
  const BufferId found = add_buffer(main, "found", kCount, ArenaStorage{});
  const BufferId t = add_buffer(main, "t", f32({n}), DynamicStorage{});
  const BufferId part = add_buffer(main, "part", f32({2}), AliasStorage{k, 8});
  const BufferId y = add_output(main, "y", f32({n})), z = add_output(main, "z", f32({2}));
  Step bind = copy_step(count, found);
  bind.binds = {{"N", found, s}};
  main.steps = {bind, kernel_step("k", {x}, {t, k}), copy_step(t, y), copy_step(part, z)};
  return main;
}

// Its caller passes the integer N, of any sign: both a number and a size.
EngineData passing() {
  Program main{.name = "main"};
  main.symbols = {{"N", {.range = {-64, INT64_MAX}}}};
  const Dim n = Dim::symbol("N");
  const BufferId number = add_input(main, "n", kCount);
  const BufferId bound = add_buffer(main, "bound", kCount, ArenaStorage{});
  const BufferId t = add_buffer(main, "t", f32({2, n}), DynamicStorage{});
  const BufferId y = add_output(main, "y", f32({2, n})), again = add_output(main, "again", kCount);
  Step bind = copy_step(number, bound);
  bind.binds = {{"N", bound, Dim(64)}};
  main.steps = {bind, kernel_step("k", {}, {t}), copy_step(t, y), copy_step(number, again)};
  main.steps[1].as<KernelStep>()->launch.sizes = {n * Dim(-3)};
  EngineData engine = engine_of("pass", std::move(main));
  engine.signature.inputs = {TensorSlot{.is_number = true}};
  engine.signature.outputs = {TensorSlot{}, TensorSlot{.is_number = true}};
  return engine;
}

}  // namespace

std::vector<EngineData> engines() {
  return {engine_of("branch", branching()),
          engine_of("loop", looping()),
          engine_of("sort", sorting()),
          engine_of("scatter", scattering()),
          engine_of("recur", recurring()),
          engine_of("late", late()),
          passing()};
}

}  // namespace ingot::core::fuzz
