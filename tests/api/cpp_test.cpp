// SPDX-License-Identifier: Apache-2.0
// The C++ headers.
#include <gmock/gmock.h>

#include "ingot/compile.h"
#include "ingot/context.h"
#include "tests/api/fixtures.h"

namespace ingot {
namespace {

using core::testing::echo_engine;
using core::testing::EngineOnDisk;
using core::testing::weight_engine;
using ::testing::ElementsAre;

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

TEST(Cpp, CountsPackedBytes) {
  EXPECT_EQ(Tensor(nullptr, DType::kI4, {3, 5}).bytes(), 9u);
  EXPECT_EQ(Tensor(nullptr, DType::kF64, {}).bytes(), 8u);
  EXPECT_EQ(Tensor(nullptr, DType::kF32, {0, 5}).bytes(), 0u);
}

}  // namespace
}  // namespace ingot
