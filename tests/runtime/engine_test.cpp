// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine.h"

#include <gmock/gmock.h>

#include <thread>

#include "runtime/prepare.h"
#include "runtime/snapshot.h"
#include "support/error.h"
#include "tests/runtime/fixtures.h"

namespace ingot::core {
namespace {

using ::testing::HasSubstr;
using namespace testing;

class EngineTest : public ::testing::Test {
 protected:
  std::shared_ptr<Engine> create(EngineData data) {
    return Engine::create(std::make_shared<EngineData>(std::move(data)), host);
  }
  static float first_output(Context& context) {
    Outputs outputs;
    context.run({}, outputs.allocator());
    return outputs.at(0)[0];
  }
  static float first_output(const std::shared_ptr<Engine>& engine) {
    Context context(engine);
    return first_output(context);
  }
  static std::vector<std::byte> to_bytes(const EngineData& data) {
    std::vector<std::byte> bytes;
    write_engine(data, [&](Bytes part) { bytes.insert(bytes.end(), part.begin(), part.end()); });
    return bytes;
  }
  std::shared_ptr<Engine> load(const std::vector<std::byte>& bytes, LoadOptions options = {}) {
    return Engine::load(EngineFile::open(Bytes(bytes), nullptr), options, host);
  }

  TestExecutor executor{weighted_kernels()};
  std::vector<const Executor*> executors{&executor};
  Host host{HostOptions{.threads = 2}, executors};
};

TEST_F(EngineTest, RunsInitWhereItHasNotRun) {
  EXPECT_EQ(first_output(create(weighted_engine())), 13);
  EXPECT_EQ(first_output(load(to_bytes(weighted_engine()))), 13);
}

TEST_F(EngineTest, ShipsPreparedWeights) {
  EngineData data = weighted_engine();
  prepare_weights(data, host);
  EXPECT_EQ(data.weights_form, WeightsForm::kPrepared);
  const auto bytes = to_bytes(data);
  const auto engine = load(bytes);
  EXPECT_EQ(engine->data().sources[0].data, nullptr);
  EXPECT_EQ(first_output(engine), 13);
}

TEST_F(EngineTest, RefitsAllOrSomeWeights) {
  const auto engine = create(weighted_engine());
  Context context(engine);
  EXPECT_EQ(first_output(context), 13);
  const Tensor w = filled({2}, 5), b = filled({2}, 0.5);
  engine->refit({{"w", {w.view(), nullptr}}}, Coverage::kSome);
  EXPECT_EQ(first_output(context), 53);
  engine->refit({{"b", {b.view(), nullptr}}}, Coverage::kSome);
  EXPECT_EQ(first_output(context), 50.5);
}

TEST_F(EngineTest, RefitOfPreparedEnginesNeedsWhatInitReads) {
  EngineData data = weighted_engine();
  prepare_weights(data, host);
  const auto bytes = to_bytes(data);
  const auto engine = load(bytes);
  const Tensor w = filled({2}, 5), b = filled({2}, 0.5);
  engine->refit({{"b", {b.view(), nullptr}}}, Coverage::kSome);
  EXPECT_EQ(first_output(engine), 10.5);
  engine->refit({{"w", {w.view(), nullptr}}}, Coverage::kSome);
  EXPECT_EQ(first_output(engine), 50.5);
}

TEST_F(EngineTest, RefitRefusesByNameAndChangesNothing) {
  const auto engine = create(weighted_engine());
  const Tensor good = filled({2}, 5), wrong_shape = filled({3}, 0),
               wrong_type = make_tensor(DType::kI32, {2});
  const auto refusal = [&](const SourceValues& values) -> std::string {
    try {
      engine->refit(values, Coverage::kSome);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({{"w", {good.view(), nullptr}}, {"x", {good.view(), nullptr}}}),
              HasSubstr("[INGOT-U320] the engine has no weight 'x'"));
  EXPECT_THAT(refusal({{"b", {good.view(), nullptr}}, {"w", {wrong_shape.view(), nullptr}}}),
              HasSubstr("[INGOT-U321] weight 'w' is f32[2], but the new value is f32[3]"));
  EXPECT_THAT(refusal({{"w", {wrong_type.view(), nullptr}}}), HasSubstr("i32[2]"));
  EXPECT_EQ(first_output(engine), 13);
}

TEST_F(EngineTest, CopiesShareWhatIsNotRefitted) {
  const auto engine = create(weighted_engine());
  const auto twin = engine->copy();
  EXPECT_EQ(twin->weights()->data, engine->weights()->data);
  const Tensor w = filled({2}, 5), b = filled({2}, 0.5);
  twin->refit({{"w", {w.view(), nullptr}}}, Coverage::kSome);
  EXPECT_EQ(first_output(twin), 53);
  EXPECT_EQ(first_output(engine), 13);
  const auto third = twin->copy();
  engine->refit({{"b", {b.view(), nullptr}}}, Coverage::kSome);
  EXPECT_EQ(first_output(engine), 10.5);
  EXPECT_EQ(first_output(third), 53);
}

TEST_F(EngineTest, CopiesOfALoadedEngineVerifyItsWeightsOnce) {
  EngineData data = weighted_engine();
  prepare_weights(data, host);
  std::vector<std::byte> bytes = to_bytes(data);
  EXPECT_EQ(first_output(load(bytes)->copy()), 13);
  bytes.back() ^= std::byte{1};
  EXPECT_THROW(first_output(load(bytes)->copy()), UserError);
}

TEST_F(EngineTest, KnowsTheDigestsOfTheWeightsThatItHas) {
  EngineData prepared = weighted_engine();
  prepare_weights(prepared, host);
  const Tensor w = filled({2}, 5);
  const Digest wanted = digest({w.data.get(), w.bytes()});
  for (const EngineData& form : {weighted_engine(), prepared}) {
    const auto bytes = to_bytes(form);
    const auto engine = load(bytes);
    EXPECT_EQ(current_data(engine).get(), &engine->data());
    engine->refit({{"w", {w.view(), nullptr}}}, Coverage::kSome);
    const auto now = current_data(engine);
    EXPECT_EQ(now->sources[0].digest, wanted);
    EXPECT_EQ(now->sources[1].digest, engine->data().sources[1].digest);
    const auto saved = to_bytes(*snapshot(engine));
    EXPECT_EQ(load(saved)->data().sources[0].digest, wanted);
    EXPECT_EQ(first_output(load(saved)), 53);
  }
}

TEST_F(EngineTest, WeightsThatWereLeftOutAreAskedFor) {
  EngineData data = weighted_engine();
  data.weights[1].data = data.sources[1].data = nullptr;
  const auto engine = create(data);
  Context context(engine);
  Outputs outputs;
  try {
    context.run({}, outputs.allocator());
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("[INGOT-U323] the engine has no value of the weight 'b'"));
  }
  const Tensor b = filled({2}, 1);
  engine->refit({{"b", {b.view(), nullptr}}}, Coverage::kSome);
  EXPECT_EQ(first_output(context), 11);
}

TEST_F(EngineTest, DamagedWeightsFailBeforeTheFirstRun) {
  EngineData data = weighted_engine();
  prepare_weights(data, host);
  std::vector<std::byte> bytes = to_bytes(data);
  bytes.back() ^= std::byte{1};
  EXPECT_THROW(load(bytes, {.verify = Verify::kFull}), UserError);
  const auto engine = load(bytes);
  for (int i = 0; i < 2; ++i) {
    try {
      first_output(engine);
      FAIL();
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr("section 'weights'"));
    }
  }
}

TEST_F(EngineTest, TrustNarrowsWhatRuns) {
  const EngineData data = weighted_engine();
  EngineData without_images{.name = "echo", .target = "null"};
  without_images.main = testing::chain();
  EXPECT_NO_THROW(load(to_bytes(data)));
  EXPECT_NO_THROW(load(to_bytes(without_images), {.trust = Trust::kNone}));
  EXPECT_THROW(load(to_bytes(without_images), {.trust = Trust::kSigned}), UserError);
  EXPECT_THROW(load(to_bytes(data), {.trust = Trust::kNone}), UserError);
}

TEST_F(EngineTest, RefusesBackendsAndRoutinesThatAreNotHere) {
  EngineData data = weighted_engine();
  for (Image& image : data.images) image.target = "cuda:sm_90";
  for (Step* step : {&data.init.steps[0], &data.main.steps[0]}) step->as<KernelStep>()->backend = "cuda";
  const auto refusal = [&](const EngineData& engine) -> std::string {
    try {
      create(engine);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(data), HasSubstr("[INGOT-U223] the engine was built for the backend 'cuda'"));
  data = weighted_engine();
  data.main.steps[0].action = RoutineStep{"no_such_routine", {}};
  EXPECT_THAT(refusal(data), HasSubstr("[INGOT-U224] the engine needs the routine 'no_such_routine'"));
}

// P9: many contexts, refits in between; each run sees one whole weight set.
TEST_F(EngineTest, ServesManyThreadsWhileWeightsChange) {
  const auto engine = create(weighted_engine());
  const Tensor w[] = {filled({2}, 1), filled({2}, 7)}, b[] = {filled({2}, 3), filled({2}, 9)};
  std::atomic<int> torn{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        Context context(engine);
        for (int i = 0; i < 300; ++i) {
          const float y = first_output(context);
          if (y != 13 && y != 79) ++torn;
        }
      });
    }
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i)
        engine->refit({{"w", {w[i % 2].view(), nullptr}}, {"b", {b[i % 2].view(), nullptr}}},
                      Coverage::kSome);
    });
  }
  EXPECT_EQ(torn, 0);
}

TEST_F(EngineTest, OldWeightsDieWithTheirLastRun) {
  const auto engine = create(weighted_engine());
  const std::weak_ptr<const WeightSet> old = engine->weights();
  Context context(engine);
  first_output(context);
  engine->refit({{"w", {filled({2}, 5).view(), nullptr}}}, Coverage::kSome);
  EXPECT_TRUE(old.expired());
}

}  // namespace
}  // namespace ingot::core
