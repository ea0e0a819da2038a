// SPDX-License-Identifier: Apache-2.0
// Weights that do not all stay on the device: the same results with less memory there, whenever copies
// happen.
#include <gtest/gtest.h>

#include <thread>

#include "engine/engine_file.h"
#include "runtime/weight_plan.h"
#include "tests/backends/device/device_graphs.h"
#include "tests/backends/device/device_run.h"

namespace ingot::core::test {
namespace {

constexpr int64_t kWidth = 96;  // 36 KB per weight: above what always stays
constexpr int kLayers = 8;

WeightBudget budget_of(std::string_view text) { return *parse_weight_budget(text); }

TensorMap layer_weights(float scale, int layers = kLayers) {
  TensorMap values;
  for (int i = 0; i < layers; ++i) {
    Tensor weight = make_tensor(DType::kF32, {kWidth, kWidth});
    auto* data = reinterpret_cast<float*>(weight.data.get());
    for (int64_t k = 0; k < kWidth * kWidth; ++k)
      data[k] = scale * static_cast<float>((k * 7 + i) % 13 - 6) / static_cast<float>(kWidth);
    values.emplace("w" + std::to_string(i), weight);
  }
  return values;
}

// Products in a row. The first weight is read again at the end, and transposed, so that init computes others.
std::string layers_text(int layers = kLayers) {
  std::string text = "graph g(%x: f32[B in 1..16, 96]) {\n";
  std::string value = "x";
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    text += "%w" + n + " = weight() {name=\"w" + n + "\", shape=[96, 96]} : f32[96, 96]\n";
    text += "%l" + n + " = linear(%" + value + ", %w" + n + ") %r" + n + " = relu(%l" + n + ")\n";
    value = "r" + n;
  }
  return text + "%y = linear(%" + value + ", %w0) return %y }";
}

class WeightStreaming : public ::testing::TestWithParam<uint64_t> {
 protected:
  std::vector<Tensor> run(Context& context, const Tensor& x, int times = 1) {
    std::vector<Tensor> outputs;
    for (int i = 0; i < times; ++i)
      outputs.push_back(call(device_, context, {x}, Where::kDevice, Where::kHost)[0]);
    return outputs;
  }
  size_t used() const { return (size_t{1} << 34) - device_.executor.memory()->free_bytes(); }

  Device device_{GetParam()};
  const aten::Imported model_ = model_with(layers_text(), layer_weights(1));
  const Tensor x_ = device_.copy_to_device(counted({3, kWidth}, -30));
};

TEST_P(WeightStreaming, ResultsDoNotChange) {
  const std::shared_ptr<Engine> engine = device_.build(model_);
  Context context(engine);
  const Tensor expected = run(context, x_)[0];
  const WeightMemory all = engine->weight_memory();
  EXPECT_EQ(all.total, all.budget);
  EXPECT_LT(all.minimum, all.total / 2);
  for (const char* budget : {"90%", "50%", "25%", "0", "auto", "60%", "all"}) {
    engine->set_weight_budget(budget_of(budget));
    for (const Tensor& output : run(context, x_, 5)) EXPECT_TRUE(same_bits(output, expected)) << budget;
  }
  EXPECT_GE(device_.executor.counts().replays, 10) << "copies are captured with the kernels";
}

TEST_P(WeightStreaming, LessOfTheDeviceIsUsed) {
  const std::shared_ptr<Engine> engine = device_.build(model_);
  Context context(engine);
  run(context, x_);
  const size_t before = used();
  const size_t total = engine->weight_memory().total;
  engine->set_weight_budget({.kind = WeightBudget::Kind::kShare, .share = 0.5});
  run(context, x_);
  const WeightMemory half = engine->weight_memory();
  EXPECT_LE(half.budget, total / 2);
  EXPECT_EQ(before - used(), total - half.budget) << "what does not stay is freed, and the ring counts";
  engine->set_weight_budget(budget_of("0"));
  run(context, x_);
  EXPECT_EQ(engine->weight_memory().budget, engine->weight_memory().minimum);
  EXPECT_EQ(before - used(), total - engine->weight_memory().minimum);
  engine->set_weight_budget({});
  run(context, x_);
  EXPECT_EQ(used(), before);
}

TEST_P(WeightStreaming, ANewValueIsTheOneThatIsCopied) {
  const std::shared_ptr<Engine> engine = device_.build(model_);
  engine->set_weight_budget(budget_of("30%"));
  Context context(engine);
  run(context, x_, 3);
  const TensorMap next = layer_weights(-0.5);
  SourceValues values;
  for (const auto& [name, value] : next) values.emplace(name, OwnedView{value.view(), value.data});
  engine->refit(values, Coverage::kAll);
  const std::vector<Tensor> outputs = run(context, x_, 3);
  Context fresh(device_.build(model_with(layers_text(), next)));
  const Tensor expected = run(fresh, x_)[0];
  for (const Tensor& output : outputs) EXPECT_TRUE(same_bits(output, expected));
  EXPECT_LT(engine->weight_memory().budget, engine->weight_memory().total / 2) << "the budget stays";
}

TEST_P(WeightStreaming, ContextsHaveRingsOfTheirOwn) {
  const std::shared_ptr<Engine> engine = device_.build(model_);
  Context first(engine);
  const Tensor expected = run(first, x_)[0];
  engine->set_weight_budget(budget_of("40%"));
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      Context context(engine);
      for (const Tensor& output : run(context, x_, 4)) EXPECT_TRUE(same_bits(output, expected));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(WeightStreaming, RunsStepByStepCopyInFrontOfEachStep) {
  const std::shared_ptr<Engine> engine = device_.build(model_);
  Context context(engine);
  const Tensor expected = run(context, x_)[0];
  engine->set_weight_budget(budget_of("25%"));
  context.set_profiling(true);
  for (const Tensor& output : run(context, x_, 2)) EXPECT_TRUE(same_bits(output, expected));
  context.set_profiling(false);
  for (const Tensor& output : run(context, x_, 3)) EXPECT_TRUE(same_bits(output, expected));
}

TEST_P(WeightStreaming, BudgetsMayChangeWhileRunsGoOn) {
  const std::shared_ptr<Engine> engine = device_.build(model_);
  Context context(engine);
  const Tensor expected = run(context, x_)[0];
  std::vector<Tensor> outputs;
  for (const char* budget : {"50%", "0", "all", "70%", "30%"}) {
    outputs.push_back(call(device_, context, {x_}, Where::kDevice, Where::kDevice)[0]);
    engine->set_weight_budget(budget_of(budget));
  }
  context.synchronize();
  for (const Tensor& output : outputs) EXPECT_TRUE(same_bits(device_.copy_to_host(output), expected));
}

// What init computes leaves the device part by part.
TEST_P(WeightStreaming, EnginesAreLoadedWithABudget) {
  const std::shared_ptr<EngineData> data = device_.compile(model_);
  Context all(Engine::create(data, device_.host));
  const Tensor expected = run(all, x_)[0];
  std::vector<std::byte> file;
  write_engine(*data, [&](Bytes part) { file.insert(file.end(), part.begin(), part.end()); });
  LoadOptions options;
  options.weight_budget = budget_of("20%");
  const auto opened = EngineFile::open(Bytes(file), nullptr);
  const std::shared_ptr<Engine> engine = Engine::load(opened, options, device_.host);
  EXPECT_LT(engine->weight_memory().budget, engine->weight_memory().total / 2);
  Context context(engine);
  for (const Tensor& output : run(context, x_, 3)) EXPECT_TRUE(same_bits(output, expected));
}

// A table of which few rows are read: kernels read them in memory of the host.
TEST_P(WeightStreaming, TablesAreReadWhereTheyAre) {
  const std::string text = R"(graph g(%i: i64[5]) {
    %t = weight() {name="t", shape=[600, 96]} : f32[600, 96]
    %w = weight() {name="w", shape=[96, 96]} : f32[96, 96]
    %x = take(%t, %i) {axis=0} : f32[5, 96]
    %l = linear(%x, %w) : f32[5, 96]
    %y = relu(%l) : f32[5, 96]
    return %y
  })";
  const TensorMap values = {{"t", counted({600, 96}, -7000)}, {"w", layer_weights(1).at("w1")}};
  const std::shared_ptr<Engine> engine = device_.build(model_with(text, values));
  Context context(engine);
  const Tensor i = device_.copy_to_device(integers({0, 599, 17, 17, 301}));
  const Tensor expected = run(context, i)[0];
  const size_t before = used();
  engine->set_weight_budget(budget_of("80%"));
  for (const Tensor& output : run(context, i, 4)) EXPECT_TRUE(same_bits(output, expected));
  const WeightMemory memory = engine->weight_memory();
  EXPECT_EQ(memory.resident, size_t{96 * 96 * 4}) << "the other weight stays";
  EXPECT_EQ(memory.ring, 0u) << "nothing is copied";
  EXPECT_EQ(before - used(), size_t{600 * 96 * 4});
}

// A part of a weight whose position a step finds.
TEST_P(WeightStreaming, PartsAtFoundPositionsAreInTheRing) {
  const std::string text = R"(graph g(%x: f32[3, 96], %i: i64[1]) {
    symbol N at most 96
    %w0 = weight() {name="w0", shape=[192, 96]} : f32[192, 96]
    %w1 = weight() {name="w1", shape=[96, 96]} : f32[96, 96]
    %n = sum(%i) {axes=[0]} : i64[]
    %at = bind_size(%n) {size=N} : i64[]
    %l1 = linear(%x, %w1) : f32[3, 96]
    %t = multiply(%l1, %l1) : f32[3, 96]
    %p = slice(%w0) {axis=0, start=N, end=N + 96} : f32[96, 96]
    %l2 = matmul(%t, %p) : f32[3, 96]
    %l3 = linear(%l2, %w1) : f32[3, 96]
    return %l3
  })";
  const TensorMap values = {{"w0", counted({192, 96}, -7000)}, {"w1", layer_weights(1).at("w1")}};
  const std::shared_ptr<Engine> engine = device_.build(model_with(text, values));
  Context context(engine);
  for (const int64_t position : {5, 96, 0}) {
    const std::vector<Tensor> inputs = {x_, device_.copy_to_device(integers({position}))};
    const auto result = [&] { return call(device_, context, inputs, Where::kDevice, Where::kHost)[0]; };
    engine->set_weight_budget({});
    const Tensor expected = result();
    const Tensor other =
        evaluate(parsed(text), std::vector{device_.copy_to_host(x_), integers({position})}, values)
            .outputs[0];
    EXPECT_TRUE(same_bits(expected, other)) << position;
    engine->set_weight_budget(budget_of("0"));
    for (int again = 0; again < 3; ++again) EXPECT_TRUE(same_bits(result(), expected)) << position;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, WeightStreaming, ::testing::Values(1, 2, 3));

TEST(WeightPlan, CopiesLittleAndNeverWhatIsStillRead) {
  Device device;
  const std::shared_ptr<Engine> engine = device.build(model_with(layers_text(24), layer_weights(1, 24)));
  const size_t total = plan_weights(engine->main(), engine->data(), SIZE_MAX).total;
  size_t copied_before = 0;
  for (size_t percent = 100; percent > 0; percent -= 5) {
    const size_t budget = total * percent / 100;
    const WeightPlan plan = plan_weights(engine->main(), engine->data(), budget);
    if (budget >= plan.minimum) {
      EXPECT_LE(plan.used(), budget) << percent;
    } else {
      EXPECT_EQ(plan.used(), plan.minimum) << percent;
    }
    size_t copied = 0;
    for (const WeightFetch& fetch : plan.fetches) {
      copied += fetch.bytes;
      EXPECT_LE(fetch.start, fetch.before);
      EXPECT_LE(fetch.offset + fetch.bytes, plan.ring);
    }
    EXPECT_GE(copied, copied_before) << percent;
    copied_before = copied;
    if (percent == 50) {
      EXPECT_LT(copied, total * 3 / 4) << "the ring is small beside what stays";
    }
  }
}

TEST(WeightBudgets, AreReadFromText) {
  EXPECT_EQ(parse_weight_budget("1.5GiB")->bytes, size_t{3} << 29);
  EXPECT_EQ(parse_weight_budget("2000000")->bytes, 2000000u);
  EXPECT_EQ(parse_weight_budget("12.5%")->in_bytes(800, 0), 100u);
  EXPECT_EQ(parse_weight_budget("auto")->in_bytes(1000, 800), 700u);
  EXPECT_EQ(parse_weight_budget("all")->in_bytes(1000, 8), 1000u);
  for (const char* text :
       {"", "%", "-1", "101%", "nan", "inf", "1e3", "5 GB", "half", "1XB", "99999999999GiB"})
    EXPECT_FALSE(parse_weight_budget(text)) << text;
}

}  // namespace
}  // namespace ingot::core::test
