// SPDX-License-Identifier: Apache-2.0
#include "runtime/context.h"

#include <gmock/gmock.h>

#include "runtime/plan_cache.h"
#include "support/error.h"
#include "tests/runtime/fixtures.h"

namespace ingot::core {
namespace {

using ::testing::HasSubstr;
using namespace testing;

// y = 2 * (x + 1) for x: f32[B, S], through the arena.
EngineData doubling_engine() {
  Program program = chain();
  const Dim count = Dim::symbol("B") * Dim::symbol("S");
  program.steps[0] = elementwise_step("add_one", 0, {0}, 1, count);
  program.steps[1] = elementwise_step("double", 1, {1}, 2, count);
  program.steps[1].nodes = {0};
  EngineData engine = engine_of(program, 2);
  engine.nodes.push_back({"mul_3", "aten.mul.Tensor", "model.py:7 in forward"});
  return engine;
}

struct Runner {
  explicit Runner(EngineData data, std::vector<TestKernel> kernels)
      : executor(std::move(kernels)), executors{&executor}, host(HostOptions{.threads = 1}, executors) {
    engine = Engine::create(std::make_shared<EngineData>(std::move(data)), host);
    context.emplace(engine);
  }
  Outputs run(const std::vector<Argument>& arguments) {
    Outputs outputs;
    context->run(arguments, outputs.allocator());
    return outputs;
  }
  std::string refusal(const std::vector<Argument>& arguments) {
    try {
      run(arguments);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
  TestExecutor executor;
  std::vector<const Executor*> executors;
  Host host;
  std::shared_ptr<Engine> engine;
  std::optional<Context> context;
};

std::vector<TestKernel> doubling_kernels() {
  const auto map = [](auto function) {
    return [function](const KernelCall& call) -> int64_t {
      for (int64_t i = 0; i < call.symbols[0]; ++i) floats(call, 1)[i] = function(floats(call, 0)[i]);
      return 0;
    };
  };
  return {map([](float x) { return x + 1; }), map([](float x) { return x * 2; })};
}

TEST(Context, RunsWithEverySize) {
  Runner runner(doubling_engine(), doubling_kernels());
  for (const auto& shape : std::vector<std::vector<int64_t>>{{1, 1}, {2, 3}, {16, 256}, {2, 3}, {1, 7}}) {
    const Tensor x = filled(shape, 1);
    const Outputs outputs = runner.run({argument(x)});
    EXPECT_EQ(outputs.tensors[0].shape, shape);
    for (int64_t i = 0; i < x.elements(); ++i) ASSERT_EQ(outputs.at(0)[i], 2 * (static_cast<float>(i) + 2));
  }
  EXPECT_EQ(runner.context->memory().cached_plans, 4u);
  EXPECT_GE(runner.context->memory().arena, 2u * 16 * 256 * 4);
}

TEST(Context, ProfilesStepsOfTheLastSizes) {
  EngineData data = doubling_engine();
  data.main.steps[0].operations = Dim::symbol("B") * Dim::symbol("S");
  Runner runner(std::move(data), doubling_kernels());
  runner.run({argument(filled({2, 3}, 1))});
  EXPECT_THROW(runner.context->profile(), UserError);  // it is off
  runner.context->set_profiling(true);
  EXPECT_THROW(runner.context->profile(), UserError);  // nothing ran
  runner.run({argument(filled({4, 4}, 1))});
  for (int i = 0; i < 3; ++i) runner.run({argument(filled({2, 3}, 1))});
  const std::string json = runner.context->profile();
  EXPECT_THAT(json, HasSubstr(R"("runs":3,)"));
  EXPECT_THAT(json, HasSubstr(R"("sizes":{"B":2,"S":3})"));
  EXPECT_THAT(json, HasSubstr(R"("operations":6,)"));
  EXPECT_THAT(json, HasSubstr("model.py:7 in forward"));
  runner.context->set_profiling(false);
  EXPECT_THROW(runner.context->profile(), UserError);
}

TEST(Context, ProfilesOnlyRunsThatEnd) {
  int calls = 0;
  std::vector<TestKernel> kernels = doubling_kernels();
  kernels[1] = [&calls, last = kernels[1]](const KernelCall& call) -> int64_t {
    return ++calls == 2 ? 1 : last(call);
  };
  Runner runner(doubling_engine(), kernels);
  runner.context->set_profiling(true);
  for (int i = 0; i < 3; ++i) runner.refusal({argument(filled({2, 3}, 1))});
  EXPECT_THAT(runner.context->profile(), HasSubstr(R"("runs":2,)"));
}

TEST(Context, BoundsItsPlans) {
  Runner runner(doubling_engine(), doubling_kernels());
  for (int64_t size = 1; size <= 200; ++size) runner.run({argument(filled({1, size}, 0))});
  EXPECT_EQ(runner.context->memory().cached_plans, PlanCache::kCapacity);
}

TEST(Context, TellsOutputShapesWithoutRunning) {
  Runner runner(doubling_engine(), {});
  const Tensor x = filled({3, 5}, 0);
  const std::vector<Argument> arguments = {argument(x)};
  EXPECT_EQ(runner.context->output_shapes(arguments), (std::vector<std::vector<int64_t>>{{3, 5}}));
}

TEST(Context, NamesTheInputThatIsWrong) {
  Runner runner(doubling_engine(), doubling_kernels());
  EXPECT_THAT(runner.refusal({}), HasSubstr("[INGOT-U300] the engine takes 1 tensor, but got 0"));
  EXPECT_THAT(runner.refusal({argument(filled({3}, 0))}), HasSubstr("[INGOT-U301] input 'x' has 1 dim, but"));
  EXPECT_THAT(runner.refusal({argument(make_tensor(DType::kI64, {1, 1}))}),
              HasSubstr("[INGOT-U302] input 'x' is i64"));
  EXPECT_THAT(runner.refusal({argument(filled({1, 257}, 0))}),
              HasSubstr("[INGOT-U305] dim 1 of input 'x' (f32[B,S]) is 257, outside of the range 1..256"));
  EXPECT_THAT(runner.refusal({argument(filled({0, 2}, 0))}),
              HasSubstr("is 0, outside of the range 1..16 that the engine was built for (B)"));
}

TEST(Context, ComparesSizesThatDependOnEachOther) {
  Program program;
  program.symbols = {{"S", {.range = {1, 100}}}};
  const Dim size = Dim::symbol("S");
  add_input(program, "a", f32({size}));
  add_input(program, "b", f32({size, 4}));
  add_input(program, "c", f32({size * Dim(2) + Dim(1)}));
  program.steps = {copy_step(0, add_output(program, "y", f32({size})))};
  Runner runner(engine_of(program), {});
  const auto refusal = [&](int64_t a, int64_t b, int64_t four, int64_t c) {
    return runner.refusal(
        {argument(filled({a}, 0)), argument(filled({b, four}, 0)), argument(filled({c}, 0))});
  };
  EXPECT_EQ(refusal(3, 3, 4, 7), "");
  EXPECT_THAT(refusal(3, 2, 4, 7),
              HasSubstr("[INGOT-U304] dim 0 of input 'b' (f32[S,4]) is 2, but dim 0 of input 'a' is 3"));
  EXPECT_THAT(refusal(3, 3, 5, 7),
              HasSubstr("[INGOT-U303] dim 1 of input 'b' (f32[S,4]) is 5, but the model expects 4"));
  EXPECT_THAT(refusal(3, 3, 4, 8), HasSubstr("is 8, but the model expects 7 (= 2*S + 1)"));
}

TEST(Context, SolvesSizesForSymbolsThatNoDimIs) {
  Program program;
  program.symbols = {{"S", {.range = {1, 8}}}};
  const Dim size = 2 * Dim::symbol("S") + 1;
  add_input(program, "a", f32({size}));
  add_input(program, "b", f32({3 * Dim::symbol("S")}));
  program.steps = {copy_step(0, add_output(program, "y", f32({size})))};
  Runner runner(engine_of(program), {});
  const auto refusal = [&](int64_t a, int64_t b) {
    return runner.refusal({argument(filled({a}, 0)), argument(filled({b}, 0))});
  };
  for (int64_t value = 1; value <= 8; ++value) EXPECT_EQ(refusal(2 * value + 1, 3 * value), "");
  EXPECT_THAT(refusal(8, 9), HasSubstr("[INGOT-U303] dim 0 of input 'a' (f32[2*S + 1]) is 8, but the model "
                                       "expects 7 (= 2*S + 1)"));
  EXPECT_THAT(refusal(7, 12), HasSubstr("[INGOT-U303] dim 0 of input 'b' (f32[3*S]) is 12, but the model "
                                        "expects 9 (= 3*S)"));
  EXPECT_THAT(refusal(19, 27),
              HasSubstr("[INGOT-U305] dim 0 of input 'a' (f32[2*S + 1]) is 19, outside of the "
                        "range 3..17"));
  EXPECT_THAT(refusal(1, 0), HasSubstr("[INGOT-U305] dim 0 of input 'a' (f32[2*S + 1]) is 1, outside"));
  EXPECT_THAT(refusal(0, 0), HasSubstr("[INGOT-U305] dim 0 of input 'a' (f32[2*S + 1]) is 0, outside"));
}

TEST(Context, CopiesInputsThatAreNotDense) {
  Runner runner(doubling_engine(), doubling_kernels());
  const Tensor x = filled({3, 2}, 0);
  const int64_t shape[] = {2, 3}, strides[] = {1, 2};
  const Outputs outputs = runner.run({{x.data.get(), DType::kF32, 2, shape, strides}});
  const float expected[] = {2, 6, 10, 4, 8, 12};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(outputs.at(0)[i], expected[i]);
}

TEST(Context, NamesTheNodeWhoseKernelFails) {
  auto kernels = doubling_kernels();
  kernels[1] = [](const KernelCall&) -> int64_t { return 1; };
  Runner runner(doubling_engine(), kernels);
  const std::string message = runner.refusal({argument(filled({1, 1}, 0))});
  EXPECT_THAT(message, HasSubstr("[INGOT-U310] an index is out of range in 'double'"));
  EXPECT_THAT(message, HasSubstr("node: mul_3"));
  EXPECT_THAT(message, HasSubstr("at: model.py:7 in forward"));
}

TEST(Context, ReportsAnAllocatorThatGivesNothing) {
  Runner runner(doubling_engine(), doubling_kernels());
  const OutputAllocator nothing{
      [](void*, size_t, DType, std::span<const int64_t>, size_t) -> void* { return nullptr; }, nullptr};
  const Tensor x = filled({1, 1}, 0);
  const std::vector<Argument> arguments = {argument(x)};
  EXPECT_THROW(runner.context->run(arguments, nothing), DeviceError);
}

TEST(Context, EvaluatesTheSizesOfLaunches) {
  EngineData engine = doubling_engine();
  engine.main.steps[0].as<KernelStep>()->launch.sizes = {Dim::symbol("S") * Dim(4), 7};
  auto kernels = doubling_kernels();
  kernels[0] = [first = kernels[0]](const KernelCall& call) -> int64_t {
    return call.sizes[0] == 40 && call.sizes[1] == 7 ? first(call) : 7;
  };
  Runner runner(std::move(engine), kernels);
  EXPECT_EQ(runner.run({argument(filled({1, 10}, 0))}).at(0)[9], 20);
}

TEST(Context, RefusesPlansWhoseSizesDoNotFit) {
  EngineData engine = doubling_engine();
  engine.main.buffers[1].as<ArenaStorage>()->bytes = 64;
  Runner runner(std::move(engine), doubling_kernels());
  EXPECT_EQ(runner.refusal({argument(filled({1, 16}, 0))}), "");
  EXPECT_THAT(runner.refusal({argument(filled({1, 17}, 0))}),
              HasSubstr("[INGOT-U206] the engine's memory plan is broken: 'a'"));
}

// state k: f32[3] += x
EngineData accumulating_engine(std::optional<uint32_t> bound_to) {
  Program program;
  const BufferId x = add_input(program, "x", f32({3}));
  const BufferId k = add_buffer(program, "k", f32({3}), StateStorage{0});
  program.states.push_back({"k", f32({3}), k});
  Step step = kernel_step("add", {x}, {k});
  step.uses[1].reads = true;
  const BufferId y = add_output(program, "y", f32({3}));
  program.steps = {step, copy_step(k, y)};
  EngineData engine = engine_of(program);
  engine.state_values.push_back({bytes_of({10, 20, 30}), DType::kF32, {3}});
  engine.signature.mutated_inputs = {bound_to};
  return engine;
}

TestKernel accumulate() {
  return [](const KernelCall& call) -> int64_t {
    for (int i = 0; i < 3; ++i) floats(call, 1)[i] += floats(call, 0)[i];
    return 0;
  };
}

TEST(Context, OwnsStates) {
  Runner runner(accumulating_engine(std::nullopt), {accumulate()});
  const Tensor x = filled({3}, 1, 0);
  EXPECT_EQ(runner.run({argument(x)}).at(0)[2], 31);
  EXPECT_EQ(runner.run({argument(x)}).at(0)[2], 32);
  Context other(runner.engine);
  Outputs outputs;
  const std::vector<Argument> arguments = {argument(x)};
  other.run(arguments, outputs.allocator());
  EXPECT_EQ(outputs.at(0)[0], 11);
  other.copy_states(*runner.context);
  other.run(arguments, outputs.allocator());
  EXPECT_EQ(outputs.at(0)[0], 13);
  runner.context->reset_states();
  EXPECT_EQ(runner.run({argument(x)}).at(0)[1], 21);
  EXPECT_EQ(runner.context->memory().states, 12u);
}

TEST(Context, TakesStatesWithoutMovingThem) {
  Runner runner(accumulating_engine(std::nullopt), {accumulate()});
  Runner other(accumulating_engine(std::nullopt), {accumulate()});  // another engine
  const Tensor x = filled({3}, 1, 0);
  EXPECT_EQ(runner.run({argument(x)}).at(0)[2], 31);
  other.context->take_states(*runner.context);
  EXPECT_EQ(other.run({argument(x)}).at(0)[2], 32);
  EXPECT_EQ(runner.run({argument(x)}).at(0)[2], 31) << "it has the other's initial state";
  const Tensor own = filled({3}, 100);
  runner.context->bind_state(0, own.data.get());
  EXPECT_THROW(other.context->take_states(*runner.context), UserError);
  EXPECT_EQ(other.run({argument(x)}).at(0)[2], 33);
}

TEST(Context, BindsStatesToTheCallersMemory) {
  Runner runner(accumulating_engine(std::nullopt), {accumulate()});
  const Tensor x = filled({3}, 1, 0), own = filled({3}, 100);
  runner.context->bind_state(0, own.data.get());
  EXPECT_EQ(runner.run({argument(x)}).at(0)[1], 102);
  EXPECT_EQ(read_double(own.view(), std::vector<int64_t>{1}), 102);
  EXPECT_THROW(Context(runner.engine).copy_states(*runner.context), UserError);
  runner.context->bind_state(0, nullptr);
  EXPECT_EQ(runner.run({argument(x)}).at(0)[1], 21);
  EXPECT_THROW(runner.context->bind_state(1, nullptr), UserError);
}

TEST(Context, UpdatesArgumentsThatTheModelMutates) {
  Runner runner(accumulating_engine(0), {accumulate()});
  const Tensor first = filled({3}, 0), second = filled({3}, 50), x = filled({3}, 1, 0);
  runner.run({argument(first), argument(x)});
  runner.run({argument(second), argument(x)});
  runner.run({argument(second), argument(x)});
  EXPECT_EQ(read_double(first.view(), std::vector<int64_t>{2}), 3);
  EXPECT_EQ(read_double(second.view(), std::vector<int64_t>{2}), 54);
  const int64_t shape[] = {3}, strides[] = {2};
  const Tensor wide = filled({6}, 0);
  EXPECT_THAT(runner.refusal({{wide.data.get(), DType::kF32, 1, shape, strides}, argument(x)}),
              HasSubstr("INGOT-U306"));
}

}  // namespace
}  // namespace ingot::core
