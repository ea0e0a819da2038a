// SPDX-License-Identifier: Apache-2.0
// Engine files whose inputs have multiples of a size that no input has by itself.
#include <gmock/gmock.h>

#include "engine/engine_file.h"
#include "support/error.h"
#include "tests/engine/engines.h"

namespace ingot::core {
namespace {

using ::testing::HasSubstr;

// y = x, for an x of that size.
EngineData engine_of_size(const Dim& size, std::vector<Dim> others = {}) {
  EngineData engine{.name = "linear", .origin = "a test", .key = "key of linear", .target = "null"};
  Program& main = engine.main;
  main.name = "main";
  main.symbols = {{"S", {.range = {1, 8}}}};
  const BufferId x = testing::add_input(main, "x", testing::f32({size}));
  for (const Dim& other : others) testing::add_input(main, "other", testing::f32({other}));
  main.steps = {testing::copy_step(x, testing::add_output(main, "y", testing::f32({size})))};
  engine.init.name = "init";
  return engine;
}
std::shared_ptr<const EngineFile> written_and_read(const EngineData& engine) {
  std::vector<std::byte> bytes;
  write_engine(engine, [&](Bytes part) { bytes.insert(bytes.end(), part.begin(), part.end()); });
  return EngineFile::open(Bytes(bytes), nullptr);
}

// Earlier readers reject it by the number: they bind symbols only by dims that are one.
TEST(LinearSizes, HaveAFormatOfTheirOwn) {
  const Dim size = Dim::symbol("S");
  EXPECT_EQ(written_and_read(engine_of_size(size))->format(), kEngineFormatVersion);
  EXPECT_EQ(written_and_read(engine_of_size(2 * size + 1))->format(), kLinearSizesFormatVersion);
  EXPECT_EQ(written_and_read(engine_of_size(2 * size, {size}))->format(), kEngineFormatVersion);
  EXPECT_EQ(written_and_read(engine_of_size(size, {3 * size}))->format(), kEngineFormatVersion);
}

TEST(LinearSizes, AreSpelledByTheSizeOfTheArgument) {
  const Dim size = Dim::symbol("S");
  const auto spelled = [](const EngineData& engine) { return spelled_symbols(engine.main).at("S"); };
  EXPECT_EQ(spelled(engine_of_size(size)), "x.shape[0]");
  EXPECT_EQ(spelled(engine_of_size(2 * size)), "(x.shape[0] // 2)");
  EXPECT_EQ(spelled(engine_of_size(size + 1)), "(x.shape[0] - 1)");
  EXPECT_EQ(spelled(engine_of_size(3 * size - 2)), "((x.shape[0] + 2) // 3)");
  EXPECT_EQ(spelled(engine_of_size(3 * size, {size})), "other.shape[0]");
}

TEST(LinearSizes, OthersBindNothing) {
  const Dim size = Dim::symbol("S");
  for (const Dim& other : {size * size, Dim(9) - size, floor_divide(size, 2)}) {
    try {
      written_and_read(engine_of_size(other));
      ADD_FAILURE() << other.to_string();
    } catch (const UserError& error) {
      EXPECT_EQ(error.details().code, "INGOT-U206");
      EXPECT_THAT(error.details().message, HasSubstr("S"));
    }
  }
}

}  // namespace
}  // namespace ingot::core
