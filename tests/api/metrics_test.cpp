// SPDX-License-Identifier: Apache-2.0
// Counters of engines while contexts come and go, in threads and forked children.
#include <gmock/gmock.h>

#include <atomic>
#include <limits>
#include <thread>

#include "ingot/context.h"
#include "ingot/engine.h"
#include "tests/api/fixtures.h"
#include "tests/support/child.h"

namespace ingot::core::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string metrics_of(const ingot_engine* engine, const char* name = "m") {
  ingot_text* text = nullptr;
  EXPECT_EQ(code_of(ingot_metrics_text(1, &engine, &name, &text)), "");
  return text_of(text);
}

// The value of a sample, such as `calls_total{engine="m"}`; -1 if there is none.
int64_t value_of(const std::string& text, const std::string& sample) {
  const std::string line = "\ningot_" + sample + " ";
  const size_t at = text.find(line);
  return at == std::string::npos ? -1 : std::stoll(text.substr(at + line.size()));
}
int64_t calls(const ingot_engine* engine) {
  return value_of(metrics_of(engine), R"(calls_total{engine="m"})");
}

std::string run_rows(ingot_context* context, int64_t rows, int64_t columns = 2) {
  std::vector<float> x(static_cast<size_t>(rows * columns), 1);
  const int64_t shape[] = {rows, columns};
  const ingot_tensor input{x.data(), INGOT_F32, 2, shape, nullptr};
  FloatOutputs outputs;
  return code_of(ingot_context_run(context, 1, &input, FloatOutputs::allocate, &outputs));
}

TEST(Metrics, CountCallsPlansAndErrors) {
  const EngineOnDisk file(echo_engine());
  const auto engine = load(file.path());
  const auto context = context_of(engine.get());
  for (const int64_t rows : {1, 1, 2, 1}) EXPECT_EQ(run_rows(context.get(), rows), "");
  EXPECT_EQ(run_rows(context.get(), 17), "INGOT-U305");
  EXPECT_EQ(run_rows(context.get(), 18), "INGOT-U305");
  const ingot_run_options options{.struct_size = sizeof(options), .allocate = FloatOutputs::allocate};
  const char* const name = "unknown";
  const ingot_tensor input{};
  EXPECT_EQ(code_of(ingot_context_run_with(context.get(), 1, &name, &input, &options)), "INGOT-U318");
  const std::string text = metrics_of(engine.get());
  EXPECT_EQ(value_of(text, R"(calls_total{engine="m"})"), 7);
  EXPECT_EQ(value_of(text, R"(call_errors_total{engine="m",code="INGOT-U305"})"), 2);
  EXPECT_EQ(value_of(text, R"(call_errors_total{engine="m",code="INGOT-U318"})"), 1);
  EXPECT_EQ(value_of(text, R"(plan_cache_misses_total{engine="m"})"), 2);
  EXPECT_EQ(value_of(text, R"(plan_cache_hits_total{engine="m"})"), 2);
  EXPECT_EQ(value_of(text, R"(plan_cache_evictions_total{engine="m"})"), 0);
  EXPECT_EQ(value_of(text, R"(cached_plans{engine="m"})"), 2);
  EXPECT_EQ(value_of(text, R"(contexts{engine="m"})"), 1);
  EXPECT_EQ(calls(load(file.path()).get()), 0);  // another engine of the same file
}

TEST(Metrics, WeightsOfCopiesCountWhileRunsReadThem) {
  const EngineOnDisk file(weight_engine());
  const ingot::Engine engine = ingot::Engine::load(file.path());
  const auto bytes = [](const ingot::Engine& of) {
    return value_of(metrics_of(of.handle()), R"(weight_bytes{engine="m"})");
  };
  const std::vector<float> values = {1, 2}, weight = {4, 3, 2, 1};
  const ingot::Tensor input(values, {1, 2});
  ingot::Context context(engine), second(engine);
  const int64_t own = bytes(engine);
  EXPECT_GT(own, 0);
  {
    ingot::Engine first = engine.copy(), other = engine.copy();
    const ingot::Engine unused = engine.copy();
    first.refit({{"w", ingot::Tensor(weight, {4})}});
    EXPECT_EQ(bytes(engine), own);  // no run reads them
    for (ingot::Context* each : {&context, &second, &context}) {
      (void)each->run({input}, {.weights = &first});
      (void)each->run({input}, {.weights = &other});
      EXPECT_EQ(bytes(engine), 2 * own);  // `other` shares its memory
    }
    other.refit({{"w", ingot::Tensor(weight, {4})}});
    EXPECT_EQ(bytes(engine), 3 * own);
    EXPECT_EQ(bytes(first), own);
    ingot_memory memory{.struct_size = sizeof(memory)};
    ASSERT_EQ(code_of(ingot_context_memory(context.handle(), &memory)), "");
    EXPECT_EQ(static_cast<int64_t>(memory.weights), 3 * own);
    EXPECT_EQ(in_child([&] { return bytes(engine) == 3 * own; }), "");
  }
  EXPECT_EQ(bytes(engine), own);
}

TEST(Metrics, PlansBeyondTheCacheAreEvicted) {
  const EngineOnDisk file(echo_engine());
  const auto engine = load(file.path());
  const auto context = context_of(engine.get());
  for (int64_t columns = 1; columns <= 40; ++columns) EXPECT_EQ(run_rows(context.get(), 1, columns), "");
  const std::string text = metrics_of(engine.get());
  EXPECT_EQ(value_of(text, R"(plan_cache_evictions_total{engine="m"})"), 8);
  EXPECT_EQ(value_of(text, R"(cached_plans{engine="m"})"), 32);
}

TEST(Metrics, BytesAreThoseOfTheContextsThatExist) {
  EngineData data = echo_engine();
  const BufferId state = add_buffer(data.main, "s", f32({1024}), StateStorage{0});
  data.main.states.push_back({"s", f32({1024}), state});
  data.state_values.push_back({nullptr, DType::kF32, {1024}});
  const EngineOnDisk file(data);
  const auto engine = load(file.path());
  const auto held = [&] {
    const std::string text = metrics_of(engine.get());
    return std::array{value_of(text, R"(state_bytes{engine="m"})"),
                      value_of(text, R"(arena_bytes{engine="m"})"),
                      value_of(text, R"(contexts{engine="m"})")};
  };
  EXPECT_EQ(held(), (std::array<int64_t, 3>{0, 0, 0}));
  {
    const auto first = context_of(engine.get()), second = context_of(engine.get());
    EXPECT_EQ(run_rows(second.get(), 4), "");
    ingot_memory memory{.struct_size = sizeof(memory)};
    EXPECT_EQ(code_of(ingot_context_memory(second.get(), &memory)), "");
    EXPECT_EQ(held(), (std::array<int64_t, 3>{2 * 4096, static_cast<int64_t>(memory.arena), 2}));
  }
  EXPECT_EQ(held(), (std::array<int64_t, 3>{0, 0, 0}));
  EXPECT_EQ(calls(engine.get()), 1);
}

TEST(Metrics, ContextsThatEndLeaveTheirCounts) {
  const EngineOnDisk file(echo_engine());
  const auto engine = load(file.path());
  std::vector<std::thread> threads;
  std::atomic<bool> is_over = false;
  threads.emplace_back([&] {  // totals never fall
    for (int64_t last = 0; !is_over;) {
      const int64_t now = calls(engine.get());
      EXPECT_GE(now, last);
      last = now;
    }
  });
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) {
        const auto context = context_of(engine.get());
        for (const int64_t rows : {1, 2, 17}) run_rows(context.get(), rows);
      }
    });
  for (size_t i = 1; i < threads.size(); ++i) threads[i].join();
  is_over = true;
  threads[0].join();
  const std::string text = metrics_of(engine.get());
  EXPECT_EQ(value_of(text, R"(calls_total{engine="m"})"), 1200);
  EXPECT_EQ(value_of(text, R"(plan_cache_misses_total{engine="m"})"), 800);
  EXPECT_EQ(value_of(text, R"(call_errors_total{engine="m",code="INGOT-U305"})"), 400);
  EXPECT_EQ(value_of(text, R"(contexts{engine="m"})"), 0);
}

TEST(Metrics, AForkedChildCountsOn) {
  if (!kForksBesideThreads) GTEST_SKIP();
  const EngineOnDisk file(echo_engine());
  const auto engine = load(file.path());
  const auto context = context_of(engine.get());
  EXPECT_EQ(run_rows(context.get(), 1), "");
  std::atomic<bool> is_over = false;
  std::thread other([&] {  // at the fork it may be anywhere: making a context, calling, freeing it
    while (!is_over) run_rows(context_of(engine.get()).get(), 1);
  });
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(in_child([&] {
                const int64_t before = calls(engine.get());
                for (int k = 0; k < 3; ++k) run_rows(context_of(engine.get()).get(), 1);
                run_rows(context.get(), 17);
                return before >= 1 && calls(engine.get()) == before + 4;
              }),
              "");
  }
  is_over = true;
  other.join();
  EXPECT_EQ(value_of(metrics_of(engine.get()), R"(call_errors_total{engine="m",code="INGOT-U305"})"), -1);
}

TEST(Metrics, NamesAreEscapedAndDiffer) {
  const EngineOnDisk file(echo_engine());
  const auto engine = load(file.path());
  EXPECT_THAT(metrics_of(engine.get(), "a\\b\"c\nd"),
              HasSubstr(R"(ingot_calls_total{engine="a\\b\"c\nd"} 0)"));
  const ingot_engine* const engines[] = {engine.get(), engine.get()};
  const char* const same[] = {"a", "a"};
  const char* const bad[] = {"a", "\xff"};
  const char* const none[] = {"a", nullptr};
  ingot_text* text = nullptr;
  EXPECT_EQ(code_of(ingot_metrics_text(2, engines, same, &text)), "INGOT-U002");
  EXPECT_EQ(code_of(ingot_metrics_text(2, engines, bad, &text)), "INGOT-U002");
  EXPECT_EQ(code_of(ingot_metrics_text(2, engines, none, &text)), "INGOT-U012");
  EXPECT_EQ(code_of(ingot_metrics_text(2, engines, nullptr, &text)), "INGOT-U012");
  EXPECT_EQ(code_of(ingot_metrics_text(0, nullptr, nullptr, nullptr)), "INGOT-U012");
}

TEST(Metrics, OfTheProcessInCpp) {
  const EngineOnDisk file(echo_engine());
  const std::map<std::string, ingot::Engine> engines{{"a", ingot::Engine::load(file.path())},
                                                     {"b", ingot::Engine::load(file.path())}};
  EXPECT_THAT(ingot::metrics(engines), AllOf(HasSubstr(R"(ingot_calls_total{engine="a"} 0)"),
                                             HasSubstr(R"(ingot_calls_total{engine="b"} 0)")));
  EXPECT_THAT(ingot::metrics(),
              AllOf(HasSubstr("ingot_info{version="), HasSubstr(R"(requests_total{found="disk"})"),
                    Not(HasSubstr("engine="))));
}

}  // namespace
}  // namespace ingot::core::testing
