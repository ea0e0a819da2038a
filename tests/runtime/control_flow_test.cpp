// SPDX-License-Identifier: Apache-2.0
// Nested programs and sizes that a step computes.
#include <gmock/gmock.h>

#include <optional>

#include "support/error.h"
#include "tests/runtime/fixtures.h"

namespace ingot::core {
namespace {

using namespace testing;

const TensorType kScalarI64{DType::kI64, {}, {}};
const TensorType kScalarBool{DType::kBool, {}, {}};

struct Machine {
  Machine(EngineData data, std::vector<TestKernel> kernels)
      : executor(std::move(kernels)), executors{&executor}, host({.threads = 1}, executors) {
    context.emplace(Engine::create(std::make_shared<EngineData>(std::move(data)), host));
  }
  Outputs run(const std::vector<Argument>& arguments) {
    Outputs outputs;
    context->run(arguments, outputs.allocator());
    return outputs;
  }
  TestExecutor executor;
  std::vector<const Executor*> executors;
  Host host;
  std::optional<Context> context;
};

template <typename Number>
Tensor scalar(DType dtype, Number value) {
  Tensor tensor = make_tensor(dtype, {});
  std::memcpy(tensor.data.get(), &value, sizeof(value));
  return tensor;
}

// y[i] = f(x[i]) for x: f32[S], with a buffer of its own in between, so that the branch has an arena.
Program branch(const std::string& name, uint32_t image) {
  Program program{.name = name};
  const TensorType type = f32({Dim::symbol("S")});
  const BufferId x = add_input(program, "x", type);
  const BufferId t = add_buffer(program, "t", type, ArenaStorage{});
  const BufferId y = add_output(program, "y", type);
  program.steps = {elementwise_step(name, image, {x}, t, Dim::symbol("S")), copy_step(t, y)};
  return program;
}

TestKernel map(float (*function)(float)) {
  return [function](const KernelCall& call) -> int64_t {
    for (int64_t i = 0; i < call.symbols[0]; ++i) floats(call, 1)[i] = function(floats(call, 0)[i]);
    return 0;
  };
}

TEST(ControlFlow, TakesOneBranch) {
  Program program{.name = "main"};
  program.symbols = {{"S", {.range = {1, 100}}}};
  const BufferId condition = add_input(program, "c", kScalarBool);
  const BufferId x = add_input(program, "x", f32({Dim::symbol("S")}));
  const BufferId t = add_buffer(program, "t", f32({Dim::symbol("S")}), ArenaStorage{});
  const BufferId y = add_output(program, "y", f32({Dim::symbol("S")}));
  program.nested = {branch("then", 0), branch("else", 1)};
  Step step{.name = "cond", .action = BranchStep{0, 1}};
  step.uses = {{condition, true, false}, {x, true, false}, {t, false, true}};
  program.steps = {step, copy_step(t, y)};
  EXPECT_NO_THROW(validate(program, 2, 0));
  Machine machine(engine_of(program, 2),
                  {map([](float v) { return v + 1; }), map([](float v) { return -v; })});
  for (const int64_t size : {2, 50, 3}) {
    const Tensor input = filled({size}, 1);
    EXPECT_EQ(machine.run({argument(scalar(DType::kBool, true)), argument(input)}).at(0)[1], 3);
    EXPECT_EQ(machine.run({argument(scalar(DType::kBool, false)), argument(input)}).at(0)[1], -2);
  }
}

// v = v * 2 + i, until 'limit' is passed; carried value, iteration and condition.
Program doubling_loop(bool with_trips) {
  Program body{.name = "body"};
  const BufferId i = add_input(body, "i", kScalarI64);
  const BufferId v = add_input(body, "v", f32({2}));
  const BufferId go_on = add_output(body, "go_on", kScalarBool);
  const BufferId next = add_output(body, "next", f32({2}));
  body.steps = {kernel_step("body", {i, v}, {go_on, next})};
  Program program{.name = "main"};
  const BufferId trips = add_input(program, "n", kScalarI64);
  const BufferId start = add_input(program, "start", kScalarBool);
  const BufferId x = add_input(program, "x", f32({2}));
  const BufferId y = add_output(program, "y", f32({2}));
  program.nested = {body};
  Step step{.name = "loop", .action = LoopStep{0}};
  step.uses = {{with_trips ? trips : kNoId, with_trips, false},
               {with_trips ? kNoId : start, !with_trips, false},
               {x, true, false},
               {y, false, true}};
  program.steps = {step};
  EXPECT_NO_THROW(validate(program, 1, 0));
  return program;
}

TestKernel loop_body() {
  return [](const KernelCall& call) -> int64_t {
    const auto i = static_cast<float>(*static_cast<int64_t*>(call.buffers[0]));
    for (int k = 0; k < 2; ++k) floats(call, 3)[k] = floats(call, 1)[k] * 2 + i;
    *static_cast<bool*>(call.buffers[2]) = floats(call, 3)[0] < 100;
    return 0;
  };
}

TEST(ControlFlow, LoopsACountedNumberOfTimes) {
  Machine machine(engine_of(doubling_loop(true)), {loop_body()});
  float expected = 1;
  for (int64_t trips = 0; trips < 5; ++trips) {
    const Tensor x = filled({2}, 1);
    const Outputs outputs = machine.run(
        {argument(scalar(DType::kI64, trips)), argument(scalar(DType::kBool, true)), argument(x)});
    EXPECT_EQ(outputs.at(0)[0], expected) << trips;
    EXPECT_EQ(read_double(x.view(), std::vector<int64_t>{0}), 1) << "the initial value was overwritten";
    expected = expected * 2 + static_cast<float>(trips);
  }
}

TEST(ControlFlow, LoopsUntilTheConditionFails) {
  Machine machine(engine_of(doubling_loop(false)), {loop_body()});
  const auto run = [&](bool starts) {
    return machine.run({argument(scalar(DType::kI64, int64_t{0})), argument(scalar(DType::kBool, starts)),
                        argument(filled({2}, 1))});
  };
  EXPECT_EQ(run(false).at(0)[0], 1);
  const Outputs outputs = run(true);
  float value = 1;
  for (float i = 0; value < 100; ++i) value = value * 2 + i;
  EXPECT_EQ(outputs.at(0)[0], value);
}

// Keeps the positive elements of x: the number of them is known only when a step has run.
EngineData compacting_engine() {
  Program program{.name = "main"};
  program.symbols = {{"S", {.range = {1, 100}}}, {"N", {.upper_bound = Dim::symbol("S")}}};
  const BufferId x = add_input(program, "x", f32({Dim::symbol("S")}));
  const BufferId count = add_buffer(program, "count", kScalarI64, ArenaStorage{});
  const BufferId kept = add_buffer(program, "kept", f32({Dim::symbol("N")}), DynamicStorage{});
  const BufferId y = add_output(program, "y", f32({Dim::symbol("N")}));
  Step counting = elementwise_step("count", 0, {x}, count, Dim::symbol("S"));
  counting.binds = {{"N", count, Dim::symbol("S")}};
  counting.host_sees_result = true;
  program.steps = {counting, elementwise_step("keep", 1, {x}, kept, Dim::symbol("S")), copy_step(kept, y)};
  EXPECT_NO_THROW(validate(program, 2, 0));
  return engine_of(program, 2);
}

TEST(StepBoundSymbols, SizeBuffersAndOutputsWhileRunning) {
  const TestKernel count = [](const KernelCall& call) -> int64_t {
    int64_t kept = 0;
    for (int64_t i = 0; i < call.symbols[0]; ++i) kept += floats(call, 0)[i] > 0;
    std::memcpy(call.buffers[1], &kept, sizeof(kept));
    return 0;
  };
  const TestKernel keep = [](const KernelCall& call) -> int64_t {
    float* to = floats(call, 1);
    for (int64_t i = 0; i < call.symbols[0]; ++i) {
      if (floats(call, 0)[i] > 0) *to++ = floats(call, 0)[i];
    }
    return 0;
  };
  Machine machine(compacting_engine(), {count, keep});
  for (const float first : {-2.f, 0.f, -9.f, 5.f}) {
    const Tensor x = filled({6}, first);
    const Outputs outputs = machine.run({argument(x)});
    const auto expected =
        std::min<int64_t>(6, std::max<int64_t>(0, 5 + static_cast<int64_t>(first) + (first > 0 ? 1 : 0)));
    ASSERT_EQ(outputs.tensors[0].shape, std::vector<int64_t>{expected}) << first;
    if (expected > 0) {
      EXPECT_EQ(outputs.at(0)[expected - 1], first + 5);
    }
  }
  EXPECT_EQ(machine.context->output_shapes(std::vector<Argument>{argument(filled({6}, 0))})[0][0], -1);
}

// x[0] is how many are kept.
TEST(StepBoundSymbols, MeetConditionsOnceTheyAreKnown) {
  int kept = 0;
  const TestKernel count = [](const KernelCall& call) -> int64_t {
    const auto value = static_cast<int64_t>(floats(call, 0)[0]);
    std::memcpy(call.buffers[1], &value, sizeof(value));
    return 0;
  };
  const TestKernel keep = [&](const KernelCall&) -> int64_t { return ++kept, 0; };
  EngineData data = compacting_engine();
  for (const char* condition : {"2 <= N", "N <= S - 1", "3 <= S"}) {
    data.checks.push_back({.kind = CheckKind::kAssertion,
                           .condition = parse_predicate(condition),
                           .message = {},
                           .node = "check",
                           .source = "model.py:7"});
  }
  Machine machine(std::move(data), {count, keep});
  const auto refusal = [&](int64_t size, float first) -> std::string {
    try {
      machine.run({argument(filled({size}, first))});
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(6, 5), "");
  EXPECT_THAT(refusal(6, 1), ::testing::HasSubstr("x >= 2; here x is 1"));
  EXPECT_THAT(refusal(6, 6), ::testing::HasSubstr("INGOT-U312"));
  EXPECT_THAT(refusal(2, 2), ::testing::HasSubstr("x.shape[0] >= 3"));
  EXPECT_EQ(kept, 1) << "a step ran with a size that the program rules out";
  EXPECT_EQ(refusal(6, 2), "");
}

TEST(StepBoundSymbols, RefuseValuesBeyondTheirBound) {
  const TestKernel wrong = [](const KernelCall& call) -> int64_t {
    const int64_t value = 7;
    std::memcpy(call.buffers[1], &value, sizeof(value));
    return 0;
  };
  Machine machine(compacting_engine(), {wrong, wrong});
  EXPECT_THROW(machine.run({argument(filled({6}, 0))}), UserError);
}

}  // namespace
}  // namespace ingot::core
