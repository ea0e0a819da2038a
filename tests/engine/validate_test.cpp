// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "engine/validate_engine.h"
#include "support/error.h"
#include "tests/engine/engines.h"

namespace ingot::core {
namespace {

using testing::add_buffer;
using testing::chain;
using testing::copy_step;
using testing::f32;
using ::testing::HasSubstr;

std::string refusal(const Program& program) {
  try {
    validate(program, 1, 2);
  } catch (const UserError& error) {
    EXPECT_EQ(error.details().code, "INGOT-U206");
    return error.details().message;
  }
  return "";
}

TEST(Validate, AcceptsAChain) { EXPECT_EQ(refusal(chain()), ""); }

TEST(Validate, RefusesBuffersThatAreAliveTogetherAndUnordered) {
  Program program = chain();
  program.buffers[2].as<ArenaStorage>()->above.clear();
  EXPECT_THAT(refusal(program), HasSubstr("'b' may overlap another live buffer"));
}

TEST(Validate, AcceptsOrderThroughAChain) {
  Program program = chain();
  const BufferId c = add_buffer(program, "c", program.buffers[1].type, ArenaStorage{});
  program.buffers[c].as<ArenaStorage>()->above = {2};
  program.steps = {copy_step(0, 1), copy_step(1, 2), copy_step(2, c), copy_step(1, c), copy_step(c, 3)};
  EXPECT_EQ(refusal(program), "");
}

TEST(Validate, RefusesReadsBeforeWrites) {
  Program program = chain();
  std::swap(program.steps[0], program.steps[1]);
  EXPECT_THAT(refusal(program), HasSubstr("reads a buffer that no earlier step wrote"));
}

TEST(Validate, RefusesOutputsThatAreNeverWritten) {
  Program program = chain();
  program.steps.pop_back();
  EXPECT_THAT(refusal(program), HasSubstr("'y' is never written"));
}

TEST(Validate, RefusesWritesToInputsAndWeights) {
  Program program = chain();
  program.steps.push_back(copy_step(1, 0));
  EXPECT_THAT(refusal(program), HasSubstr("writes an input"));
  program = chain();
  program.steps.push_back(copy_step(1, add_buffer(program, "w", f32({4}), WeightStorage{1})));
  EXPECT_THAT(refusal(program), HasSubstr("writes an input, a weight"));
}

TEST(Validate, RefusesUnknownSymbols) {
  Program program = chain();
  program.steps[1] = testing::kernel_step("k", {1}, {2});
  program.steps[1].as<KernelStep>()->launch.symbols = {Dim::symbol("T")};
  EXPECT_THAT(refusal(program), HasSubstr("uses the symbol T"));
}

TEST(Validate, TheRankBindsSymbols) {
  Program program = chain();
  const TensorType type = f32({Dim::symbol("R")});
  const BufferId own = add_buffer(program, "own", type, ArenaStorage{});
  program.buffers[own].as<ArenaStorage>()->above = {1, 2};
  EXPECT_THAT(refusal(program), HasSubstr("R"));
  SymbolInfo& info =
      program.symbols["R"] = {.range = {3, 4}, .typical = {}, .upper_bound = {}, .by_rank = {}};
  EXPECT_THAT(refusal(program), HasSubstr("'R' is a symbol that is never bound"));
  info.by_rank = {.axes = {{"tp", 2}}, .sizes = {4, 3}};
  EXPECT_EQ(refusal(program), "");
  info.by_rank->sizes = {4, 5};
  EXPECT_THAT(refusal(program), HasSubstr("outside of its range"));
  info.by_rank->sizes = {4};
  EXPECT_THAT(refusal(program), HasSubstr("other than one size per rank"));
}

TEST(Validate, RefusesIdsOutOfRange) {
  Program program = chain();
  program.steps[1] = testing::kernel_step("k", {1}, {2});
  EXPECT_EQ(refusal(program), "");
  program.steps[1].as<KernelStep>()->launch.image = 1;
  EXPECT_THAT(refusal(program), HasSubstr("'k' runs a kernel binary that the engine lacks"));
  program.steps[1] = copy_step(1, 77);
  EXPECT_THAT(refusal(program), HasSubstr("uses a buffer that does not exist"));
  program = chain();
  add_buffer(program, "w", f32({4}), WeightStorage{2});
  EXPECT_THAT(refusal(program), HasSubstr("'w' names no such"));
}

TEST(Validate, RefusesCyclesOfAliasesAndOrder) {
  Program program = chain();
  program.buffers[1].storage = AliasStorage{.of = 1};
  EXPECT_THAT(refusal(program), HasSubstr("alias of no earlier buffer"));
  program = chain();
  program.buffers[1].as<ArenaStorage>()->above = {2};
  EXPECT_THAT(refusal(program), HasSubstr("is not above an earlier"));
}

constexpr Place kDevice = {Place::Kind::kDevice, 0};

TEST(Validate, RefusesDevicesThatTheEngineDoesNotName) {
  for (BufferId id = 0; id < chain().buffers.size(); ++id) {
    Program program = chain();
    program.buffers[id].place = kDevice;
    EXPECT_THAT(refusal(program), HasSubstr("is on a device that the engine does not list")) << id;
  }
}

// x and y on the host, a and b where the kernel runs.
EngineData device_engine() {
  using namespace testing;
  EngineData engine{.name = "device", .target = "gpu", .devices = {"gpu"}};
  engine.images.push_back({.kernel = "k", .target = "gpu", .code = {std::byte{}}});
  engine.main = chain();
  engine.main.buffers[1].place = engine.main.buffers[2].place = kDevice;
  engine.main.steps[1] = kernel_step("k", {1}, {2});
  engine.main.steps[1].as<KernelStep>()->backend = "gpu";
  return engine;
}

std::string refusal(const EngineData& engine) {
  try {
    validate_engine(engine);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Validate, KernelsFindTheirBuffersWhereTheirBackendWorks) {
  EXPECT_EQ(refusal(device_engine()), "");
  for (const BufferId id : {1u, 2u}) {
    EngineData engine = device_engine();
    engine.main.buffers[id].place = {};
    engine.main.buffers[2].as<ArenaStorage>()->above.clear();
    EXPECT_THAT(refusal(engine), HasSubstr("of another place than its own")) << id;
  }
  EngineData engine = device_engine();
  engine.main.steps[1].action = RoutineStep{"sort", {}};
  EXPECT_THAT(refusal(engine), HasSubstr("of another place than its own"));
  engine = device_engine();
  engine.devices = {"other"};
  EXPECT_THAT(refusal(engine), HasSubstr("of another place than its own"));
}

// Arenas are placed one by one: a relation between two of them would read offsets that nobody computed.
TEST(Validate, RefusesOrderBetweenArenas) {
  EngineData engine = device_engine();
  add_buffer(engine.main, "c", engine.main.buffers[1].type, ArenaStorage{.bytes = 0, .above = {2}});
  EXPECT_THAT(refusal(engine), HasSubstr("'c' is not above an earlier buffer of its arena"));
  engine.main.buffers.back().place = kDevice;
  EXPECT_EQ(refusal(engine), "");
}

TEST(Validate, AliasesLieWhereTheirRootLies) {
  EngineData engine = device_engine();
  engine.main.buffers[2].storage = AliasStorage{.of = 1};
  EXPECT_EQ(refusal(engine), "");
  engine.main.buffers[1].place = {};
  EXPECT_THAT(refusal(engine), HasSubstr("is an alias of a buffer of another place"));
}

TEST(Validate, OnlyTheHostBindsSymbols) {
  EngineData engine = device_engine();
  const BufferId count = add_buffer(engine.main, "n", {DType::kI64, {}, {}}, ArenaStorage{});
  engine.main.buffers[count].place = kDevice;
  engine.main.buffers[count].as<ArenaStorage>()->above = {1, 2};
  engine.main.steps[1].uses.push_back({count, false, true});
  EXPECT_EQ(refusal(engine), "");
  engine.main.steps[1].binds.push_back({"n", count, 5});
  EXPECT_THAT(refusal(engine), HasSubstr("binds a symbol to a buffer that the host cannot read"));
}

TEST(Validate, RefusesFurtherBuffersOfAPort) {
  for (const Storage& storage :
       {Storage(InputStorage{0}), Storage(OutputStorage{0}), Storage(StateStorage{0})}) {
    Program program = chain();
    const BufferId state = add_buffer(program, "k", f32({4}), StateStorage{0});
    program.states.push_back({"k", f32({4}), state});
    EXPECT_EQ(refusal(program), "");
    add_buffer(program, "second", f32({1 << 20}), storage);
    EXPECT_THAT(refusal(program), HasSubstr("'second' is not the buffer of its port"));
  }
}

TEST(Validate, NestedProgramsSeeStatesAsTheyAre) {
  Program program = chain();
  const BufferId state = add_buffer(program, "k", f32({4}), StateStorage{0});
  program.states.push_back({"k", f32({4}), state});
  program.nested = {Program{.name = "nested"}};
  const BufferId seen = add_buffer(program.nested[0], "k", f32({4}), StateStorage{0});
  EXPECT_EQ(refusal(program), "");
  program.nested[0].buffers[seen].type = f32({1 << 20});
  EXPECT_THAT(refusal(program), HasSubstr("'k' is not the buffer of its port"));
  program.nested[0].buffers[seen].type = f32({4});
  program.nested[0].states.push_back({"k", f32({4}), seen});
  EXPECT_THAT(refusal(program), HasSubstr("has states of its own"));
}

TEST(Validate, RefusesLayoutsThatAreNotOneToOne) {
  const auto refusal_of = [](const char* layout) {
    Program program = chain();
    program.buffers[1].type.layout = parse_layout(layout, 2);
    return refusal(program);
  };
  for (const char* layout : {"{0}", "{1}", "{0, 0, 1}", "{0/2, 1}", "{0%4, 1}", "{0/16, 1, 0%8}",
                             "{0/8, 1, 0%16}", "{0/16, 1, 0%16, 0%16}", "{0/16, 1, 0/4%4}",
                             "{0/16%2, 1, 0%16}", "{0/9223372036854775807, 1, 0%9223372036854775807, 1%2}"})
    EXPECT_THAT(refusal_of(layout), HasSubstr("layout that is not a bijection")) << layout;
  for (const char* layout : {"{1, 0}", "{0/16, 1, 0%16}", "{0, 1/8, 1/2%4, 1%2}"})
    EXPECT_THAT(refusal_of(layout), ::testing::Not(HasSubstr("one to one"))) << layout;
}

TEST(Validate, RefusesPortsThatAreNotRowMajor) {
  for (const BufferId id : {0, 3}) {
    Program program = chain();
    Port& port = id == 0 ? program.inputs[0] : program.outputs[0];
    port.type.layout = program.buffers[id].type.layout = parse_layout("{1, 0}", 2);
    EXPECT_THAT(refusal(program), HasSubstr("is a port that is not row-major"));
  }
}

TEST(Validate, RefusesRoutinesOnLayoutsAndOnWhatTheyWrite) {
  Program program = chain();
  program.steps[1].action = RoutineStep{"sort", {}};
  EXPECT_EQ(refusal(program), "");
  program.steps[1].uses.push_back({1, false, true});
  EXPECT_THAT(refusal(program), HasSubstr("writes memory of another operand"));
  program.steps[1].uses.pop_back();
  program.buffers[2].type.layout = parse_layout("{1, 0}", 2);
  EXPECT_THAT(refusal(program), HasSubstr("operand that is not row-major"));
}

TEST(Validate, RefusesKernelsOfOtherRoutinesThanCollectivesOfDevices) {
  const NamedValues on_device = {{"group", std::string()}, {"on_device", int64_t{1}}};
  EngineData engine = device_engine();
  const auto set = [&](NamedValues attributes, ImageId image) -> EngineData& {
    engine.main.steps[1].action = RoutineStep{"all_reduce", std::move(attributes), image};
    return engine;
  };
  EXPECT_EQ(refusal(set(on_device, 0)), "");
  EXPECT_THAT(refusal(set(on_device, 7)), HasSubstr("a kernel binary that the engine lacks"));
  EXPECT_THAT(refusal(set({{"group", std::string()}}, 0)), HasSubstr("is not a collective of GPUs"));
}

// a -> all ranks' sum b -> c, where what does both steps reads a until the end.
EngineData followed_engine() {
  EngineData engine = device_engine();
  Program& main = engine.main;
  const BufferId c = testing::add_buffer(main, "c", main.buffers[2].type, ArenaStorage{});
  main.buffers[c].place = kDevice;
  main.buffers[c].as<ArenaStorage>()->above = {2};
  main.steps[1].action =
      RoutineStep{"all_reduce", {{"group", std::string()}, {"on_device", int64_t{1}}}, 0, 0};
  main.steps.insert(main.steps.begin() + 2, testing::kernel_step("next", {2}, {c}));
  main.steps[2].as<KernelStep>()->backend = "gpu";
  main.steps[3].uses[0].buffer = c;
  return engine;
}

TEST(Validate, StepsThatDoTheNextOneKeepTheirOperands) {
  EngineData engine = followed_engine();
  EXPECT_EQ(refusal(engine), "");
  const auto set = [&](ImageId image, ImageId with_next) -> EngineData& {
    auto& routine = *engine.main.steps[1].as<RoutineStep>();
    routine.image = image;
    routine.with_next = with_next;
    return engine;
  };
  EXPECT_THAT(refusal(set(0, 7)), HasSubstr("by a kernel binary that the engine lacks"));
  EXPECT_THAT(refusal(set(kNoId, 0)), HasSubstr("no kernel behind it"));
  set(0, 0).main.steps[2].uses[0].buffer = 1;
  EXPECT_THAT(refusal(engine), HasSubstr("no kernel behind it"));
  engine = followed_engine();
  engine.main.buffers[2].as<ArenaStorage>()->above = {};
  engine.main.buffers[4].as<ArenaStorage>()->above = {1, 2};
  EXPECT_NE(refusal(engine), "");
  engine = followed_engine();
  engine.main.buffers[2].as<ArenaStorage>()->above = {};
  engine.main.steps[1].as<RoutineStep>()->with_next = kNoId;
  EXPECT_NE(refusal(engine), "");
}

Program loop() {
  Program body{.name = "body"};
  const BufferId iteration = testing::add_input(body, "i", {DType::kI64, {}, {}});
  const BufferId value = testing::add_input(body, "v", f32({4}));
  const BufferId go_on = testing::add_output(body, "go_on", {DType::kBool, {}, {}});
  const BufferId next = testing::add_output(body, "next", f32({4}));
  body.steps = {testing::kernel_step("step", {iteration, value}, {go_on, next})};
  Program program{.name = "main"};
  const BufferId x = testing::add_input(program, "x", f32({4}));
  const BufferId y = testing::add_output(program, "y", f32({4}));
  const BufferId count = testing::add_input(program, "n", {DType::kI64, {}, {}});
  program.nested = {body};
  Step step{.name = "loop", .action = LoopStep{0}};
  step.uses = {{count, true, false}, {kNoId, false, false}, {x, true, false}, {y, false, true}};
  program.steps = {step};
  return program;
}

TEST(Validate, ChecksLoopsAgainstTheirBodies) {
  EXPECT_EQ(refusal(loop()), "");
  Program program = loop();
  program.nested[0].inputs[1].type = program.nested[0].buffers[1].type = f32({5});
  EXPECT_THAT(refusal(program), HasSubstr("'loop'"));
  program = loop();
  program.steps[0].action = LoopStep{3};
  EXPECT_THAT(refusal(program), HasSubstr("runs a nested program that does not exist"));
  program = loop();
  program.steps[0].uses[0] = {kNoId, false, false};
  EXPECT_THAT(refusal(program), HasSubstr("has neither a trip count nor a condition"));
  program = loop();
  program.nested[0].steps.clear();
  EXPECT_THAT(refusal(program), HasSubstr("is never written"));
}

std::string engine_refusal(const EngineData& engine) {
  try {
    validate_engine(engine);
    return "";
  } catch (const UserError& error) {
    return error.details().message;
  }
}

TEST(ValidateEngine, WeightsAreWhatInitMakesLayoutIncluded) {
  const auto with_types = [](TensorType made, TensorType read) {
    EngineData engine = testing::small_engine();
    engine.init.outputs[0].type = engine.init.buffers[1].type = made;
    engine.weights[2].type = engine.main.buffers[engine.main.steps[1].uses[3].buffer].type = read;
    return engine_refusal(engine);
  };
  const TensorType plain = f32({2, 2}), permuted = {DType::kF32, {2, 2}, Layout{{{1}, {0}}}};
  EXPECT_EQ(with_types(plain, plain), "");
  EXPECT_EQ(with_types(permuted, permuted), "");
  EXPECT_THAT(with_types(permuted, plain), HasSubstr("'init.0' differs from the result of init"));
  EXPECT_THAT(with_types(f32({4}), plain), HasSubstr("'init.0' differs from the result of init"));
}

// A processor would run what follows the code.
TEST(ValidateEngine, ImagesHaveCode) {
  EngineData engine = testing::small_engine();
  for (const char* target : {"null", "cpu:x86-64-v3", "cuda:sm_90a"}) {
    engine.images.push_back({.kernel = "extra", .target = target});  // whether or not a step runs it
    EXPECT_THAT(engine_refusal(engine), HasSubstr("'extra' is an image without code")) << target;
    engine.images.pop_back();
  }
}

TEST(ValidateEngine, WeightsOfTheModelAreRowMajor) {
  EngineData engine = testing::small_engine();
  engine.weights[0].type = {DType::kF32, {2, 2}, Layout{{{1}, {0}}}};
  EXPECT_THAT(engine_refusal(engine), HasSubstr("'layer.w' differs from the model's weight"));
}

TEST(PlaceArena, AddsUpAlongTheOrder) {
  const Program program = chain();
  const std::vector<int64_t> sizes = {0, 128, 64, 0};
  std::vector<int64_t> offsets(4);
  EXPECT_EQ(place_arena(program, {}, sizes, offsets), 192);
  EXPECT_EQ(offsets[2], 128);
  EXPECT_EQ(place_arena(program, {Place::Kind::kDevice, 0}, sizes, offsets), 0);
}

TEST(PlaceArena, RefusesOverflow) {
  const Program program = chain();
  const std::vector<int64_t> sizes = {0, INT64_MAX - 1, 64, 0};
  std::vector<int64_t> offsets(4);
  EXPECT_THROW(place_arena(program, {}, sizes, offsets), UserError);
}

}  // namespace
}  // namespace ingot::core
