// SPDX-License-Identifier: Apache-2.0
// The C++ headers.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory_resource>

#include "ingot/compile.h"
#include "ingot/context.h"
#include "tests/api/fixtures.h"

namespace ingot {
namespace {

using core::testing::echo_engine;
using core::testing::EngineOnDisk;
using core::testing::updating_engine;
using core::testing::weight_engine;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

TEST(Cpp, RunsAnEngine) {
  const EngineOnDisk file(echo_engine());
  const Engine engine = Engine::load(file.path(), {.verify = Verify::kFull});
  ASSERT_EQ(engine.inputs().size(), 1u);
  EXPECT_EQ(engine.inputs()[0].name, "x");
  EXPECT_THAT(engine.inputs()[0].dims, ElementsAre("B", "S"));
  EXPECT_EQ(engine.inputs()[0].max[0], 16);
  Context context(engine);
  const std::vector<float> values = {1, 2, 3, 4};
  const auto outputs = context.run({Tensor(values, {2, 2})});
  EXPECT_THAT(outputs[0].shape(), ElementsAre(2, 2));
  EXPECT_THAT(outputs[0].values<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(outputs[0].data()) % 64, 0u);
}

TEST(Cpp, RunsACopyOfAFileThatIsTruncated) {
  const EngineOnDisk file(echo_engine());
  Context context(Engine::load(file.path(), {.memory = FileMemory::kCopy}));
  std::filesystem::resize_file(file.path(), 1);
  const std::vector<float> values = {1, 2};
  EXPECT_THAT(context.run({Tensor(values, {1, 2})})[0].values<float>(), ElementsAre(1, 2));
}

TEST(Cpp, ReusesTheMemoryOfOutputs) {
  const EngineOnDisk file(echo_engine());
  Context context(Engine::load(file.path()));
  const std::vector<float> values = {1, 2, 3, 4};
  const Tensor large(values, {1, 4}), small(values.data(), DType::kF32, {1, 2});
  std::vector<Tensor> outputs;
  context.run(std::span(&large, 1), outputs);
  const void* memory = outputs[0].data();
  context.run(std::span(&small, 1), outputs);
  EXPECT_EQ(outputs[0].data(), memory);
  EXPECT_THAT(outputs[0].values<float>(), ElementsAre(1, 2));
  const Tensor shared = outputs[0];  // its values have to stay
  context.run(std::span(&large, 1), outputs);
  EXPECT_NE(outputs[0].data(), memory);
  EXPECT_THAT(shared.values<float>(), ElementsAre(1, 2));
}

TEST(Cpp, ThrowsTheKindOfTheError) {
  const EngineOnDisk file(echo_engine());
  EXPECT_THROW(Engine::load(file.path("missing")), UserError);
  Context context(Engine::load(file.path()));
  try {
    context.run({Tensor(std::vector<int64_t>{1}, {1, 1})});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), INGOT_USER_ERROR);
    EXPECT_STREQ(error.code(), "INGOT-U302");
    EXPECT_NE(explain(error.code()), "");
  }
}

TEST(Cpp, PassesExceptionsOfTheAllocator) {
  const EngineOnDisk file(echo_engine());
  Context context(Engine::load(file.path()));
  const std::vector<float> values = {1};
  const Tensor input(values, {1, 1});
  const auto fail = [](size_t, DType, std::span<const int64_t>, size_t) -> void* { throw 5; };
  EXPECT_THROW(context.run_with(std::span(&input, 1), fail), int);
  const auto refuse = [](size_t, DType, std::span<const int64_t>, size_t) -> void* { return nullptr; };
  EXPECT_THROW(context.run_with(std::span(&input, 1), refuse), DeviceError);
}

TEST(Cpp, TellsShapesAndRefits) {
  const EngineOnDisk file(weight_engine());
  Engine engine = Engine::load(file.path());
  Context context(engine);
  const std::vector<float> values = {1, 2}, weight = {4, 3, 2, 1};
  const Tensor input(values, {1, 2});
  const auto shapes = context.output_shapes(std::span(&input, 1));
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_THAT(shapes[0], ElementsAre(1, 2));
  EXPECT_THAT(shapes[1], ElementsAre(4));
  EXPECT_THAT(engine.weights(), ElementsAre("w"));
  engine.refit({{"w", Tensor(weight, {4})}});
  EXPECT_THAT(context.run({input})[1].values<float>(), ElementsAre(4, 3, 2, 1));
  EXPECT_EQ(context.memory().weights, 16u);
}

TEST(Cpp, LoadsFromMemory) {
  const EngineOnDisk file(echo_engine());
  ingot_text* text = nullptr;
  ASSERT_EQ(ingot_engine_save_memory(Engine::load(file.path()).handle(), &text), nullptr);
  const auto bytes = std::make_shared<const std::string>(core::testing::text_of(text));
  std::weak_ptr<const std::string> watched = bytes;
  {
    const Engine engine = Engine::load(std::as_bytes(std::span(*bytes)), bytes);
    EXPECT_EQ(engine.outputs()[0].name, "y");
  }
  EXPECT_EQ(watched.use_count(), 1);
}

TEST(Cpp, KeepsAnEngineInMemory) {
  const EngineOnDisk file(echo_engine());
  std::vector<std::byte> bytes = Engine::load(file.path()).to_bytes();
  EXPECT_EQ(bytes.size(), std::filesystem::file_size(file.path()));
  Context context(Engine::load(std::move(bytes), {.verify = Verify::kFull}));
  const std::vector<float> values = {1, 2};
  EXPECT_THAT(context.run({Tensor(values, {1, 2})})[0].values<float>(), ElementsAre(1, 2));
}

TEST(Cpp, RunsByNames) {
  const EngineOnDisk file(weight_engine());
  Context context(Engine::load(file.path()));
  const std::vector<float> values = {1, 2};
  const auto outputs = context.run({{"x", Tensor(values, {1, 2})}});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_THAT(outputs.at("y").values<float>(), ElementsAre(1, 2));
  EXPECT_THAT(outputs.at("z").values<float>(), ElementsAre(1, 2, 3, 4));
}

TEST(Cpp, KeepsMetadata) {
  core::EngineData data = weight_engine();
  data.metadata = {{"commit", "1a2b3c"}, {"empty", ""}};
  const EngineOnDisk file(data);
  Engine engine = Engine::load(file.path());
  const std::vector<float> weight = {4, 3, 2, 1};
  engine.refit({{"w", Tensor(weight, {4})}});
  engine.copy().save(file.path("refitted"));
  EXPECT_EQ(Engine::load(file.path("refitted")).metadata(), data.metadata);
  EXPECT_EQ(ingot_engine_metadata_key(engine.handle(), 2), nullptr);
  EXPECT_EQ(ingot_engine_metadata_value(engine.handle(), "other"), nullptr);
}

std::string code_of_refusal(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const UserError& error) {
    return error.code();
  }
}

TEST(Cpp, RunsReadTheWeightsOfACopy) {
  const EngineOnDisk file(weight_engine());
  const Engine engine = Engine::load(file.path());
  Engine copy = engine.copy();
  Context context(engine);
  const std::vector<float> values = {1, 2}, weight = {4, 3, 2, 1};
  const Tensor input(values, {1, 2});
  const std::vector<float> own = [&] {
    const auto outputs = context.run({input});
    return std::vector<float>(outputs[1].values<float>().begin(), outputs[1].values<float>().end());
  }();
  copy.refit({{"w", Tensor(weight, {4})}});
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(context.run({input}, {.weights = &copy})[1].values<float>(), ElementsAre(4, 3, 2, 1));
    EXPECT_THAT(context.run({input})[1].values<float>(), ElementsAreArray(own));
    EXPECT_THAT(context.run({input}, {.weights = &engine})[1].values<float>(), ElementsAreArray(own));
  }
  const Engine other = Engine::load(file.path());
  EXPECT_EQ(code_of_refusal([&] { (void)context.run({input}, {.weights = &other}); }), "INGOT-U328");
  EXPECT_THAT(context.run({input})[1].values<float>(), ElementsAreArray(own));
}

TEST(Cpp, RefusesTensorsThatContradictThemselves) {
  const std::vector<float> values = {1, 2, 3, 4};
  std::vector<float> own = values;
  const std::vector<std::function<void()>> calls = {
      [&] { Tensor(values, {5}); },
      [&] { Tensor(values, {2, 1}); },
      [&] { Tensor(own, {}); },
      [&] { Tensor(std::span(values), {INT64_MAX, INT64_MAX}); },
      [&] { Tensor(std::span(own).first(3), {2, 2}); },
      [&] { Tensor(std::vector<double>(), {1}); },
      [&] { Tensor(values.data(), DType::kF32, {-1}); },
      [&] { Tensor(values.data(), DType::kF32, {0, -1}); },
      [&] { Tensor(values.data(), DType::kF32, {2, 2}, {1}); },
      [&] { Tensor(values.data(), DType::kF32, {4}, {1, 1}); },
      [&] { Tensor(values.data(), static_cast<DType>(0), {4}); },
      [&] { Tensor(values.data(), static_cast<DType>(-1), {4}); },
      [&] { Tensor(values.data(), static_cast<DType>(20), {4}); },
      [&] { Tensor(values.data(), DType::kI4, {INT64_MAX / 2}); },
      [&] { Tensor::empty(DType::kF64, {int64_t{1} << 62}); },
      [&] { Tensor::empty(DType::kF32, {int64_t{1} << 32, 0, int64_t{1} << 40}); },
      [&] { Tensor::empty(DType::kF32, {-4}); },
  };
  for (size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(code_of_refusal(calls[i]), "INGOT-U019") << i;
  EXPECT_EQ(Tensor(values, {4}).elements(), 4);
  EXPECT_EQ(Tensor(std::vector<float>(), {3, 0}).elements(), 0);
  EXPECT_EQ(bit_width(static_cast<DType>(-5)), 0);
}

TEST(Cpp, RefusesValuesOfAnotherType) {
  std::vector<float> values = {1, 2, 3, 4};
  const Tensor tensor(values, {4});
  EXPECT_EQ(code_of_refusal([&] { tensor.values<double>(); }), "INGOT-U019");
  EXPECT_EQ(code_of_refusal([&] { tensor.values<int32_t>(); }), "INGOT-U019");
  EXPECT_EQ(code_of_refusal([&] { Tensor(values.data(), DType::kF32, {2}, {2}).values<float>(); }),
            "INGOT-U019");
  EXPECT_EQ(code_of_refusal([&] { Tensor().values<float>(); }), "INGOT-U019");
  EXPECT_EQ(tensor.values<const float>()[3], 4);
}

TEST(Cpp, LeavesNoTensorBehindAMove) {
  Tensor first = Tensor::empty(DType::kF64, {8});
  const Tensor second = std::move(first);
  EXPECT_EQ(first.data(), nullptr);
  EXPECT_TRUE(first.shape().empty());
  EXPECT_EQ(code_of_refusal([&] { first.values<float>(); }), "INGOT-U019");
  EXPECT_EQ(second.values<double>().size(), 8U);
  Tensor third = second;
  third = std::move(third);  // NOLINT: has to be harmless
  EXPECT_EQ(second.values<double>().size(), 8U);
}

TEST(Cpp, RefusesHandlesThatWereMovedAway) {
  const EngineOnDisk file(echo_engine());
  Engine engine = Engine::load(file.path());
  Context context(engine);
  Context taken = std::move(context);
  const Engine other = std::move(engine);
  const std::vector<float> values = {1};
  const Tensor input(values, {1, 1});
  std::vector<Tensor> outputs;
  const std::vector<std::function<void()>> calls = {
      [&] { context.run({input}); },
      [&] { context.run(std::span(&input, 1), outputs); },
      [&] { context.output_shapes(std::span(&input, 1)); },
      [&] { context.bind_state(0, nullptr); },
      [&] { context.reset_states(); },
      [&] { context.copy_states(taken); },
      [&] { context.take_states(taken); },
      [&] { context.memory(); },
      [&] { Context{engine}; },
      [&] { (void)engine.copy(); },
      [&] { engine.save(file.path("other")); },
      [&] { engine.refit({}); },
      [&] { (void)engine.inspect(); },
      [&] { (void)engine.signature(); },
  };
  for (size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(code_of_refusal(calls[i]), "INGOT-U012") << i;
  EXPECT_TRUE(engine.inputs().empty() && engine.outputs().empty() && engine.states().empty());
  EXPECT_TRUE(engine.weights().empty());
  EXPECT_EQ(other.inputs().size(), 1U);
}

TEST(Cpp, RefusesWhatTheEngineDoesNotTake) {
  const EngineOnDisk file(weight_engine());
  Engine engine = Engine::load(file.path());
  Context context(engine);
  std::vector<float> values = {1, 2};
  const Tensor input(values, {1, 2});
  EXPECT_EQ(code_of_refusal([&] { context.run({}); }), "INGOT-U300");
  EXPECT_EQ(code_of_refusal([&] { context.run({input, input}); }), "INGOT-U300");
  EXPECT_EQ(code_of_refusal([&] { context.run({{"z", input}}); }), "INGOT-U318");
  EXPECT_EQ(code_of_refusal([&] { context.run({{"x", input}, {"z", input}}); }), "INGOT-U318");
  EXPECT_EQ(code_of_refusal([&] { context.run(NamedTensors()); }), "INGOT-U300");
  EXPECT_EQ(code_of_refusal([&] { context.run({Tensor()}); }), "INGOT-U012");
  EXPECT_EQ(code_of_refusal([&] { context.bind_state(0, values.data()); }), "INGOT-U307");
  EXPECT_EQ(code_of_refusal([&] { engine.refit({{"w", Tensor()}}); }), "INGOT-U012");
  EXPECT_EQ(code_of_refusal([&] { engine.refit({{"v", input}}); }), "INGOT-U320");
  EXPECT_EQ(code_of_refusal([&] { engine.refit({{"w", input}}); }), "INGOT-U321");
  EXPECT_EQ(code_of_refusal([&] { set_threads(-1); }), "INGOT-U002");
  EXPECT_EQ(explain("INGOT-U000"), "");
}

TEST(Cpp, EndsRunsEarly) {
  const EngineOnDisk file(echo_engine());
  Context context(Engine::load(file.path()), {.threads = 1});
  EXPECT_EQ(context.threads(), 1);
  const std::vector<float> values = {1, 2};
  const Tensor input(values, {1, 2});
  Cancellation cancellation;
  const RunOptions options{.cancellation = &cancellation};
  const auto now = std::chrono::steady_clock::now();
  EXPECT_EQ(code_of_refusal([&] { context.run({input}, {.deadline = now}); }), "INGOT-U317");
  EXPECT_EQ(code_of_refusal([&] { context.run({input}, {.deadline = {}}); }), "INGOT-U317");
  EXPECT_EQ(code_of_refusal([&] { context.run({input}, {.deadline = now + std::chrono::hours(1)}); }), "");
  EXPECT_EQ(code_of_refusal([&] { context.run({{"x", input}}, options); }), "");
  cancellation.cancel();
  EXPECT_TRUE(cancellation.is_cancelled());
  EXPECT_EQ(code_of_refusal([&] { context.run({{"x", input}}, options); }), "INGOT-U316");
  cancellation.reset();
  EXPECT_EQ(code_of_refusal([&] { context.run({input}, options); }), "");
}

TEST(Cpp, TakesTheMemoryOfAContextFromAResource) {
  struct Counting final : std::pmr::memory_resource {
    size_t held = 0;
    void* do_allocate(size_t bytes, size_t alignment) override {
      held += bytes;
      return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    }
    void do_deallocate(void* data, size_t bytes, size_t alignment) override {
      held -= bytes;
      std::pmr::new_delete_resource()->deallocate(data, bytes, alignment);
    }
    bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
  } memory;
  const EngineOnDisk file(echo_engine());
  const Engine engine = Engine::load(file.path());
  const std::vector<float> values = {1, 2};
  {
    Context context(engine, {.memory = &memory});
    context.run({Tensor(values, {1, 2})});
    EXPECT_GE(memory.held, context.memory().arena);
    EXPECT_GT(memory.held, 0u);
  }
  EXPECT_EQ(memory.held, 0u);
  Context context(engine, {.memory = std::pmr::null_memory_resource()});
  EXPECT_THROW(context.run({Tensor(values, {1, 2})}), DeviceError);
}

TEST(Cpp, OutputsStayTensorsWhereThereIsNoMemoryForNewOnes) {
  const EngineOnDisk file(echo_engine());
  Context context(Engine::load(file.path()));
  const std::vector<float> values(256, 1.0F);
  const Tensor input(values, {1, 256});
  std::vector<Tensor> outputs = {Tensor(values, {2, 128})};  // borrowed: no memory to write to
  context.run(std::span(&input, 1), outputs);
  EXPECT_NE(outputs[0].data(), values.data());
  EXPECT_FALSE(outputs[0].is_read_only());
  EXPECT_THAT(outputs[0].shape(), ElementsAre(1, 256));
}

TEST(Cpp, ConstMemoryIsNotUpdatedInPlace) {
  const EngineOnDisk file(updating_engine());
  const Engine engine = Engine::load(file.path());
  EXPECT_EQ(ingot_engine_input_is_updated(engine.handle(), 0), 1);
  EXPECT_EQ(ingot_engine_input_is_updated(engine.handle(), 1), 0);
  EXPECT_EQ(ingot_engine_input_is_updated(nullptr, 0), 0);
  Context context(engine);
  const std::vector<float> fixed = {1, 2, 3, 4};
  std::vector<float> own = {0, 0, 0, 0};
  const auto run = [&](const Tensor& target) { context.run({target, Tensor(fixed, {4})}); };
  EXPECT_EQ(code_of_refusal([&] { run(Tensor(fixed, {4})); }), "INGOT-U315");
  EXPECT_EQ(code_of_refusal([&] { run(Tensor(std::span<const float>(own), {4})); }), "INGOT-U315");
  EXPECT_EQ(code_of_refusal([&] { run(Tensor(static_cast<const void*>(own.data()), DType::kF32, {4})); }),
            "INGOT-U315");
  EXPECT_THAT(own, ElementsAre(0, 0, 0, 0));
  const NamedTensors by_name = {{"target", Tensor(fixed, {4})}, {"x", Tensor(fixed, {4})}};
  EXPECT_EQ(code_of_refusal([&] { context.run(by_name); }), "INGOT-U315");
  run(Tensor(own, {4}));
  EXPECT_THAT(own, ElementsAre(1, 2, 3, 4));
  const Tensor memory = Tensor::empty(DType::kF32, {4});
  run(memory);
  EXPECT_THAT(memory.values<float>(), ElementsAre(1, 2, 3, 4));
}

TEST(Cpp, WhatIsUpdatedInPlaceSharesNoMemory) {
  const EngineOnDisk file(updating_engine());
  Context context(Engine::load(file.path()));
  std::vector<float> memory = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto run = [&](size_t target, size_t x) {
    context.run(
        {Tensor(std::span(memory).subspan(target, 4), {4}), Tensor(std::span(memory).subspan(x, 4), {4})});
  };
  for (const auto& [target, x] : std::vector<std::pair<size_t, size_t>>{{0, 0}, {0, 3}, {3, 0}, {1, 4}})
    EXPECT_EQ(code_of_refusal([&] { run(target, x); }), "INGOT-U314") << target << " " << x;
  EXPECT_THAT(memory, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  run(0, 4);
  run(4, 0);
  EXPECT_THAT(memory, ElementsAre(5, 6, 7, 8, 5, 6, 7, 8));
}

TEST(Cpp, CountsPackedBytes) {
  EXPECT_EQ(Tensor(nullptr, DType::kI4, {3, 5}).bytes(), 9u);
  EXPECT_EQ(Tensor(nullptr, DType::kF64, {}).bytes(), 8u);
  EXPECT_EQ(Tensor(nullptr, DType::kF32, {0, 5}).bytes(), 0u);
}

}  // namespace
}  // namespace ingot
