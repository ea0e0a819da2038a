// SPDX-License-Identifier: Apache-2.0
// What the runtime owes to work that is still enqueued: memory, weights, and when the host may look.
#include <gtest/gtest.h>

#include <cstring>

#include "engine/validate_engine.h"
#include "runtime/plan_cache.h"
#include "tests/backends/device/device_graphs.h"
#include "tests/backends/device/device_run.h"

namespace ingot::core::test {
namespace {

class DeviceLifetimes : public ::testing::TestWithParam<uint64_t> {
 protected:
  // Calls with outputs on the device, without waiting in between; then compares all of them.
  void expect_right(Context& context, const Graph& graph, const std::vector<std::vector<Tensor>>& calls,
                    Where inputs) {
    std::vector<std::vector<Tensor>> outputs, held;
    for (const auto& call_inputs : calls) {
      auto& given = held.emplace_back();
      for (const Tensor& tensor : call_inputs)
        given.push_back(inputs == Where::kDevice ? device_.copy_to_device(tensor) : to_dense(tensor.view()));
      outputs.push_back(call(device_, context, given, inputs, Where::kDevice));
      if (inputs == Where::kHost) {  // the caller's again
        for (const Tensor& tensor : given) std::memset(tensor.data.get(), 0x55, tensor.bytes());
      }
    }
    context.synchronize();
    for (size_t i = 0; i < calls.size(); ++i) {
      const Evaluation expected = evaluate(graph, calls[i], {});
      for (size_t k = 0; k < expected.outputs.size(); ++k)
        EXPECT_TRUE(same_bits(device_.copy_to_host(outputs[i][k]), expected.outputs[k])) << i << ", " << k;
    }
  }

  Device device_{GetParam()};
};

std::vector<std::vector<Tensor>> growing_calls() {
  std::vector<std::vector<Tensor>> calls;
  for (const int64_t rows : {3, 5, 200, 4, 700, 0, 1500}) calls.push_back({counted({rows, 8})});
  return calls;
}

TEST_P(DeviceLifetimes, ArenasGrowWhileEarlierRunsUseThem) {
  const Graph graph = parsed(kChain);
  Context context(device_.build(graph, 0));
  expect_right(context, graph, growing_calls(), Where::kDevice);
}

TEST_P(DeviceLifetimes, CopiesOfInputsGrowWhileEarlierRunsReadThem) {
  const Graph graph = parsed(kChain);
  Context context(device_.build(graph, 0));
  expect_right(context, graph, growing_calls(), Where::kHost);
}

// Data-dependent sizes: the host has to see them during the run, and their memory belongs to the plan.
constexpr std::string_view kFound =
    "graph g(%x: f32[N in 1..512], %limit: f32[]) {\n"
    "  symbol U at most N\n"
    "  %mask = greater(%x, %limit)\n"
    "  %ones = convert(%mask) {dtype=i64}\n"
    "  %count = sum(%ones) {axes=[0]}\n"
    "  %size = bind_size(%count) {size=U} : i64[]\n"
    "  %found = nonzero(%mask, %size) {size=U} : i64[U,1]\n"
    "  %flat = reshape(%found) {shape=[U]} : i64[U]\n"
    "  %y = take(%x, %flat) : f32[U]\n"
    "  %z = exp(%y) : f32[U]\n"
    "  return %z\n"
    "}\n";

TEST_P(DeviceLifetimes, SizesFollowFromData) {
  const Graph graph = parsed(kFound);
  Context context(device_.build(graph, 0));
  std::vector<std::vector<Tensor>> calls;
  for (const int64_t size : {20, 64, 20, 300, 64}) {
    for (const float limit : {0.0F, 2.0F, 100.0F}) calls.push_back({counted({size}), floats({limit}, {})});
  }
  expect_right(context, graph, calls, Where::kDevice);
}

TEST_P(DeviceLifetimes, PlansAreForgottenWhileTheirRunsGoOn) {
  const Graph graph = parsed(kFound);
  Context context(device_.build(graph, 0));
  std::vector<std::vector<Tensor>> calls;
  for (int64_t size = 1; size <= static_cast<int64_t>(PlanCache::kCapacity) + 8; ++size)
    calls.push_back({counted({size}), floats({0.5F}, {})});
  expect_right(context, graph, calls, Where::kDevice);
}

TEST_P(DeviceLifetimes, RoutinesRunOnTheHostBetweenKernels) {
  const Graph graph = parsed(
      "graph g(%x: f32[B in 1..64, 8]) { %a = negate(%x) %v, %i = sort(%a) {axis=1} %b = add(%v, %x) "
      "%w, %j = sort(%b) {axis=0} return %w, %j, %i }");
  for (const int level : {0, 3}) {
    Context context(device_.build(graph, level));
    std::vector<std::vector<Tensor>> calls;
    for (const int64_t rows : {3, 40, 7}) calls.push_back({counted({rows, 8}, static_cast<float>(rows))});
    expect_right(context, graph, calls, Where::kDevice);
    expect_right(context, graph, calls, Where::kHost);
  }
}

// With limits, steps are enqueued one by one: a failure may be told while others are running.
TEST_P(DeviceLifetimes, ARunThatFailsLeavesNothingRunning) {
  const Graph graph = parsed(kTaken);
  Context context(device_.build(graph, 0));
  const int32_t never = 0;
  const RunOptions limited{.limits = {.cancel = &never}};
  for (int i = 0; i < 20; ++i) {
    const Tensor x = device_.copy_to_device(counted({9})), bad = device_.copy_to_device(integers({9}));
    const std::string code = code_of_call([&] {
      const auto outputs = call(device_, context, {x, bad}, Where::kDevice, Where::kDevice, limited);
      context.synchronize();
    });
    EXPECT_EQ(code, "INGOT-U310");
  }
  EXPECT_EQ(code_of_call([&] { context.synchronize(); }), "");
}

// No build makes such engines yet: the input stays on the host, and the first step copies it.
TEST_P(DeviceLifetimes, InputsOnTheHostAreTheCallersOnceACallReturns) {
  const std::shared_ptr<EngineData> data =
      device_.compile(model_with("graph g(%x: f32[64]) { %y = negate(%x) return %y }", {}), 0);
  Program& main = data->main;
  const BufferId x = main.inputs[0].buffer, copy = static_cast<BufferId>(main.buffers.size());
  main.buffers.push_back({.name = "copy",
                          .type = main.buffers[x].type,
                          .place = main.buffers[x].place,
                          .storage = DynamicStorage{}});
  main.buffers[x].place = {};
  for (Step& step : main.steps) {
    for (BufferUse& use : step.uses) use.buffer = use.buffer == x ? copy : use.buffer;
  }
  main.steps.insert(main.steps.begin(),
                    {.name = "copy", .action = CopyStep{}, .uses = {{x, true, false}, {copy, false, true}}});
  validate_engine(*data);
  Context context(Engine::create(data, device_.host));
  const Tensor input = counted({64}), given = to_dense(input.view());
  const Tensor output = call(device_, context, {given}, Where::kHost, Where::kDevice)[0];
  std::memset(given.data.get(), 0, given.bytes());
  context.synchronize();
  const Graph graph = parsed("graph g(%x: f32[64]) { %y = negate(%x) return %y }");
  EXPECT_TRUE(same_bits(device_.copy_to_host(output), evaluate(graph, std::vector{input}, {}).outputs[0]));
}

TEST_P(DeviceLifetimes, StatesAreReplacedWhileRunsUseThem) {
  const TensorMap initial = {{"s", counted({64})}};
  const aten::Imported model = model_with(
      "graph g(%x: f32[64]) { %s = state() {name=\"s\", shape=[64]} : f32[64] %t = add(%s, %x) update %s = "
      "%t return %t }",
      initial);
  const std::shared_ptr<Engine> engine = device_.build(model);
  Context context(engine), other(engine);
  const Tensor x = device_.copy_to_device(counted({64}, 1));
  std::vector<Tensor> expected = {initial.at("s")};
  for (int i = 0; i < 3; ++i)
    expected.push_back(
        evaluate(model.graph, std::vector{counted({64}, 1)}, {{"s", expected.back()}}).outputs[0]);
  const auto run = [&](Context& on) { return call(device_, on, {x}, Where::kDevice, Where::kDevice)[0]; };
  const Tensor first = run(context), second = run(context);
  other.copy_states(context);
  const Tensor copied = run(other);
  const Tensor own = device_.copy_to_device(initial.at("s"));
  context.bind_state(0, own.data.get());
  const Tensor bound = run(context);
  context.bind_state(0, nullptr);
  const Tensor fresh = run(context);
  context.reset_states();
  const Tensor reset = run(context);
  for (const Context* each : {&context, &other}) each->synchronize();
  EXPECT_TRUE(same_bits(device_.copy_to_host(first), expected[1]));
  EXPECT_TRUE(same_bits(device_.copy_to_host(second), expected[2]));
  EXPECT_TRUE(same_bits(device_.copy_to_host(copied), expected[3]));
  EXPECT_TRUE(same_bits(device_.copy_to_host(bound), expected[1]));
  EXPECT_TRUE(same_bits(device_.copy_to_host(own), expected[1]));
  EXPECT_TRUE(same_bits(device_.copy_to_host(fresh), expected[1]));
  EXPECT_TRUE(same_bits(device_.copy_to_host(reset), expected[1]));
}

INSTANTIATE_TEST_SUITE_P(Seeds, DeviceLifetimes, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace ingot::core::test
