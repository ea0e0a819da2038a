// SPDX-License-Identifier: Apache-2.0
// Runs on a device: enqueued late, captured and replayed, with errors that are told later.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/backends/device/device_graphs.h"
#include "tests/backends/device/device_run.h"

namespace ingot::core::test {
namespace {

class DeviceRuns : public ::testing::TestWithParam<uint64_t> {
 protected:
  Device device_{GetParam()};
};

TEST_P(DeviceRuns, RepeatedCallsAreReplayed) {
  const Graph graph = parsed(kChain);
  Context context(device_.build(graph, 0));
  const Tensor x = device_.copy_to_device(counted({4, 8}));
  const Tensor y = call(device_, context, {x}, Where::kDevice, Where::kHost)[0];
  std::vector<Tensor> outputs;
  for (int i = 0; i < 5; ++i) outputs.push_back(call(device_, context, {x}, Where::kDevice, Where::kHost)[0]);
  EXPECT_GE(device_.executor.counts().replays, 3);
  for (const Tensor& output : outputs) EXPECT_TRUE(same_bits(output, y));
}

TEST_P(DeviceRuns, ContextsMayEndBeforeTheirWork) {
  const Graph graph = parsed(kChain);
  const std::shared_ptr<Engine> engine = device_.build(graph, 0);
  const Tensor x = counted({300, 8}), there = device_.copy_to_device(x);
  Tensor y;
  {
    Context context(engine);
    y = call(device_, context, {there}, Where::kDevice, Where::kDevice)[0];
  }
  EXPECT_TRUE(same_bits(device_.copy_to_host(y), evaluate(graph, std::vector{x}, {}).outputs[0]));
}

TEST_P(DeviceRuns, IndicesOutOfRangeAreToldByTheNextCall) {
  const Graph graph = parsed(kTaken);
  Context context(device_.build(graph, 0));
  const Tensor x = counted({9}), good = integers({1, 8}), bad = integers({1, 9});
  std::vector<Tensor> held;  // until the device is done with it
  const auto run = [&](const Tensor& indices, Where outputs) {
    held.push_back(call(device_, context, {x, indices}, Where::kHost, outputs)[0]);
    return held.back();
  };
  EXPECT_EQ(code_of_call([&] { run(bad, Where::kHost); }), "INGOT-U310");
  EXPECT_EQ(code_of_call([&] { run(good, Where::kHost); }), "");
  EXPECT_EQ(code_of_call([&] { run(bad, Where::kDevice); }), "");
  EXPECT_EQ(code_of_call([&] { run(good, Where::kDevice); }), "INGOT-U310");
  EXPECT_EQ(code_of_call([&] { run(bad, Where::kDevice); }), "");
  EXPECT_EQ(code_of_call([&] { context.synchronize(); }), "INGOT-U310");
  EXPECT_EQ(code_of_call([&] { context.synchronize(); }), "");
  const Evaluation expected = evaluate(graph, std::vector{x, good}, {});
  EXPECT_TRUE(same_bits(run(good, Where::kHost), expected.outputs[0]));
}

TEST_P(DeviceRuns, IndicesOutOfRangeAreToldByTheCallItselfWhereItIsAsked) {
  const Graph graph = parsed(kTaken);
  Context context(device_.build(graph, 0), {.checks_at_once = true});
  const Tensor x = device_.copy_to_device(counted({9})), good = device_.copy_to_device(integers({1, 8})),
               bad = device_.copy_to_device(integers({1, 9}));
  const auto run = [&](const Tensor& indices) {
    return call(device_, context, {x, indices}, Where::kDevice, Where::kDevice)[0];
  };
  const Tensor expected = evaluate(graph, std::vector{counted({9}), integers({1, 8})}, {}).outputs[0];
  for (int round = 0; round < 3; ++round) {  // enqueued, captured, replayed
    EXPECT_EQ(code_of_call([&] { run(bad); }), "INGOT-U310");
    EXPECT_TRUE(same_bits(device_.copy_to_host(run(good)), expected)) << "without a wait";
  }
}

TEST_P(DeviceRuns, NothingIsCapturedWhereGraphsAreNotWanted) {
  const Graph graph = parsed(kChain);
  const std::shared_ptr<Engine> engine = device_.build(graph, 0);
  const Tensor x = device_.copy_to_device(counted({4, 8}));
  const Tensor expected = evaluate(graph, std::vector{counted({4, 8})}, {}).outputs[0];
  const auto run = [&](Context& context) {
    for (int i = 0; i < 5; ++i)
      EXPECT_TRUE(same_bits(call(device_, context, {x}, Where::kDevice, Where::kHost)[0], expected));
  };
  Context plain(engine, {.uses_graphs = false}), other(engine);
  run(plain);
  EXPECT_EQ(device_.executor.counts().graphs, 0);
  EXPECT_EQ(device_.executor.counts().replays, 0);
  run(other);
  EXPECT_GE(device_.executor.counts().replays, 3);
}

TEST_P(DeviceRuns, RefitsDoNotDisturbRunsThatGoOn) {
  const std::string_view text =
      "graph g(%x: f32[B in 1..64, 6]) { %w = weight() {name=\"w\", shape=[8, 6]} : f32[8, 6] %u = "
      "multiply(%w, "
      "%w) %y = linear(%x, %u) return %y }";
  const auto value = [](int i) { return counted({8, 6}, static_cast<float>(i)); };
  const aten::Imported model = model_with(text, {{"w", value(0)}});
  const std::shared_ptr<Engine> engine = device_.build(model);
  Context context(engine);
  const Tensor x = counted({5, 6}), there = device_.copy_to_device(x);
  std::vector<Tensor> outputs;
  for (int i = 1; i <= 6; ++i) {
    outputs.push_back(call(device_, context, {there}, Where::kDevice, Where::kDevice)[0]);
    const Tensor next = value(i);
    engine->refit({{"w", OwnedView{next.view(), next.data}}}, Coverage::kAll);
  }
  context.synchronize();
  for (int i = 0; i < 6; ++i) {
    const Evaluation expected = evaluate(model.graph, std::vector{x}, {{"w", value(i)}});
    EXPECT_TRUE(same_bits(device_.copy_to_host(outputs[static_cast<size_t>(i)]), expected.outputs[0])) << i;
  }
}

// Calls whose addresses and sizes were seen before are repeated without being listed again: they do what is
// asked now, whatever has changed between.
TEST_P(DeviceRuns, RepeatedCallsFollowWhateverHasChanged) {
  const auto weight = [](int i) { return counted({8}, static_cast<float>(i)); };
  const aten::Imported model = model_with(
      "graph g(%x: f32[B in 1..400, 8]) { %w = weight() {name=\"w\", shape=[8]} : f32[8] %s = state() "
      "{name=\"s\", shape=[8]} : f32[8] %m = multiply(%x, %w) %t = sum(%m) {axes=[0]} %u = add(%s, %t) "
      "update "
      "%s = %u %y = add(%m, %u) return %y }",
      {{"w", weight(0)}, {"s", weight(1)}});
  std::vector<std::shared_ptr<Engine>> engines{device_.build(model)};  // the context's, and copies of it
  for (int i = 0; i < 2; ++i) engines.push_back(engines[0]->copy());
  Context context(engines[0]);
  std::minstd_rand random(static_cast<uint32_t>(GetParam()));
  const auto one_of = [&](size_t count) { return static_cast<size_t>(random()) % count; };
  std::vector<Tensor> given, there, states, bound;
  for (const int64_t rows : {3, 3, 40, 100}) given.push_back(counted({rows, 8}, static_cast<float>(rows)));
  for (const Tensor& x : given) there.push_back(device_.copy_to_device(x));
  for (int i = 0; i < 2; ++i) bound.push_back(device_.copy_to_device(weight(1)));
  states.assign(2, weight(1));
  std::vector<Tensor> own(engines.size(), weight(0));
  size_t state = 0, owner = 0;
  struct Answer {
    Tensor got, want;
    bool is_there;
  };
  std::vector<Answer> enqueued;
  for (int call_number = 0; call_number < 80; ++call_number) {
    if (one_of(3) == 0) owner = one_of(engines.size());
    if (one_of(16) == 0 && owner > 0) {  // the old copy ends, perhaps before what it was used for
      engines[owner] = engines[0]->copy();
      own[owner] = own[0];
    }
    if (one_of(8) == 0) {
      const Tensor& value = own[owner] = weight(static_cast<int>(one_of(4)));
      engines[owner]->refit({{"w", OwnedView{value.view(), value.data}}}, Coverage::kAll);
    }
    if (call_number == 0 || one_of(4) == 0) context.bind_state(0, bound[state = one_of(2)].data.get());
    const size_t x = one_of(given.size());
    const bool is_on_device = one_of(4) == 0;  // in memory of its own
    const Tensor output =
        call(device_, context, {there[x]}, Where::kDevice, is_on_device ? Where::kDevice : Where::kHost,
             {.weights = owner == 0 ? nullptr : engines[owner].get()})[0];
    const Evaluation now =
        evaluate(model.graph, std::vector{given[x]}, {{"w", own[owner]}, {"s", states[state]}});
    states[state] = now.updates.at("s");
    enqueued.push_back({output, now.outputs[0], is_on_device});
    if (one_of(4) != 0) continue;  // what follows is enqueued behind it
    context.synchronize();
    for (const auto& [got, want, is_there] : std::exchange(enqueued, {}))
      ASSERT_TRUE(same_bits(is_there ? device_.copy_to_host(got) : got, want)) << call_number;
  }
  EXPECT_GE(device_.executor.counts().replays, 20);
}

TEST_P(DeviceRuns, ThreadsHaveContextsOfTheirOwn) {
  const Graph graph = parsed(kChain);
  const std::shared_ptr<Engine> engine = device_.build(graph);
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      Context context(engine);
      for (int64_t rows = 1; rows < 40; rows += 4 + i) {
        const Tensor x = counted({rows, 8}, static_cast<float>(i));
        const Tensor y = call(device_, context, {x}, Where::kHost, Where::kHost)[0];
        EXPECT_TRUE(same_bits(y, evaluate(graph, std::vector{x}, {}).outputs[0]));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Seeds, DeviceRuns, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace ingot::core::test
