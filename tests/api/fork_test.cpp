// SPDX-License-Identifier: Apache-2.0
// Processes that load an engine and fork: the children run, refit, set threads and fork themselves.
#include <atomic>
#include <fstream>
#include <thread>

#include "tests/api/fixtures.h"
#include "tests/support/child.h"

namespace ingot::core::testing {
namespace {

constexpr int64_t kFloats = int64_t{4} << 20;  // 16 blocks to verify

// y = x; z = w, a weight of 16 MiB.
EngineData large_engine() {
  EngineData engine = echo_engine();
  const std::vector<float> values(kFloats, 2.0F);
  engine.sources.push_back({.name = "w", .shape = {kFloats}, .data = bytes_of(values)});
  engine.weights.push_back({.name = "w",
                            .type = f32({kFloats}),
                            .origin = FromSource{0},
                            .data = engine.sources[0].data,
                            .bytes = kFloats * sizeof(float)});
  const BufferId weight = add_buffer(engine.main, "w", f32({kFloats}), WeightStorage{0});
  const BufferId z = add_output(engine.main, "z", f32({kFloats}));
  engine.main.steps.push_back(copy_step(weight, z));
  return engine;
}

bool run_gives(ingot_context* context, float weight) {
  float x[] = {5, 6};
  const int64_t shape[] = {1, 2};
  const ingot_tensor input{x, INGOT_F32, 2, shape, nullptr};
  FloatOutputs outputs;
  if (code_of(ingot_context_run(context, 1, &input, FloatOutputs::allocate, &outputs)) != "") return false;
  return outputs.values[0][1] == 6 && outputs.values[1].front() == weight &&
         outputs.values[1].back() == weight;
}

bool new_context_gives(ingot_engine* engine, float weight) {
  return run_gives(context_of(engine).get(), weight);
}

std::string refit_with(ingot_engine* engine, float value) {
  std::vector<float> values(kFloats, value);
  const char* const name = "w";
  const ingot_tensor weight{values.data(), INGOT_F32, 1, &kFloats, nullptr};
  return code_of(ingot_engine_refit(engine, 1, &name, &weight, nullptr));
}

bool set_threads_works() {
  return code_of(ingot_set_threads(2)) == "" && code_of(ingot_set_spin(10)) == "" && ingot_get_threads() >= 1;
}

// A load starts a thread, which checks the weights.
class Fork : public ::testing::Test {
  void SetUp() override {
    if (!kForksBesideThreads) GTEST_SKIP();
  }
};

TEST_F(Fork, RightAfterALoad) {
  const EngineOnDisk file(large_engine());
  for (int i = 0; i < 10; ++i) {
    const auto engine = load(file.path());
    EXPECT_EQ(in_child([&] { return new_context_gives(engine.get(), 2); }), "") << i;
    EXPECT_TRUE(i % 2 == 0 || new_context_gives(engine.get(), 2));
  }
}

TEST_F(Fork, ChildrenForkAndFreeWhatTheyInherited) {
  const EngineOnDisk file(large_engine());
  auto engine = load(file.path());
  const auto use_and_free = [&] {
    const bool right = new_context_gives(engine.get(), 2);
    engine.reset();
    return right;
  };
  EXPECT_EQ(in_child([&] { return in_child(use_and_free).empty() && use_and_free(); }), "");
  EXPECT_EQ(in_child([&] {  // before the weights were checked
              engine.reset();
              return true;
            }),
            "");
  EXPECT_TRUE(new_context_gives(engine.get(), 2));
}

TEST_F(Fork, ContextsHaveThreadsOfTheirOwnInTheChildToo) {
  const EngineOnDisk file(large_engine());
  const auto engine = load(file.path());
  const ingot_context_options options{.struct_size = sizeof(ingot_context_options), .threads = 2};
  const auto make = [&] {
    ingot_context* context = nullptr;
    EXPECT_EQ(code_of(ingot_context_create_with(engine.get(), &options, &context)), "");
    return Owned<ingot_context>(context);
  };
  auto context = make();
  ASSERT_TRUE(run_gives(context.get(), 2));
  EXPECT_EQ(in_child([&] {
              const bool right = run_gives(context.get(), 2) && run_gives(make().get(), 2);
              context.reset();
              return right;
            }),
            "");
  EXPECT_TRUE(run_gives(context.get(), 2));
}

TEST_F(Fork, ChildrenSetThreads) {
  const EngineOnDisk file(large_engine());
  const auto engine = load(file.path());
  const auto context = context_of(engine.get());
  ASSERT_TRUE(run_gives(context.get(), 2));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(in_child([&] { return set_threads_works() && run_gives(context.get(), 2); }), "");
  }
}

TEST_F(Fork, DamageIsFoundInTheChild) {
  const EngineOnDisk file(large_engine());
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(file.path()));
  {
    std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(size - 100);
    stream.put('x');
  }
  for (int i = 0; i < 5; ++i) {
    const auto engine = load(file.path());
    EXPECT_EQ(in_child([&] {
                float x[] = {5, 6};
                const int64_t shape[] = {1, 2};
                const ingot_tensor input{x, INGOT_F32, 2, shape, nullptr};
                FloatOutputs outputs;
                const auto context = context_of(engine.get());
                return code_of(ingot_context_run(context.get(), 1, &input, FloatOutputs::allocate,
                                                 &outputs)) == "INGOT-U210";
              }),
              "");
  }
}

// One thread runs, one refits, one loads, all while this one forks.
TEST_F(Fork, WhileOtherThreadsRunRefitAndLoad) {
  const EngineOnDisk file(large_engine());
  const auto engine = load(file.path());
  const auto copy_of = [&] {
    ingot_engine* copy = nullptr;
    EXPECT_EQ(code_of(ingot_engine_copy(engine.get(), &copy)), "");
    return Owned<ingot_engine>(copy);
  };
  const auto refitted = copy_of();
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    while (!stop) EXPECT_TRUE(new_context_gives(engine.get(), 2));
  });
  threads.emplace_back([&] {
    for (int i = 0; !stop; ++i) EXPECT_EQ(refit_with(refitted.get(), i % 2 == 0 ? 4.0F : 3.0F), "");
  });
  threads.emplace_back([&] {
    while (!stop) load(file.path());
  });
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(in_child([&] {
                if (!new_context_gives(engine.get(), 2) || !set_threads_works()) return false;
                return refit_with(refitted.get(), 7) == "" && new_context_gives(refitted.get(), 7) &&
                       new_context_gives(engine.get(), 2);
              }),
              "")
        << i;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ingot::core::testing
