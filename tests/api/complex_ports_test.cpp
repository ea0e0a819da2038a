// SPDX-License-Identifier: Apache-2.0
// Ports whose pairs of reals callers see as complex numbers.
#include <complex>

#include <gmock/gmock.h>

#include "ingot/context.h"
#include "ingot/engine.h"
#include "tests/api/fixtures.h"

namespace ingot::core::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Complex = std::complex<float>;

// y = z, c64[S in 1..8, 2].
EngineData complex_echo() {
  EngineData engine{.name = "echo", .origin = "a test", .key = "key of echo", .target = "null"};
  const TensorType pairs = f32({Dim::symbol("S"), 2, 2});
  engine.main.symbols["S"] = {.range = {1, 8}};
  const BufferId z = add_buffer(engine.main, "z", pairs, InputStorage{0});
  engine.main.inputs.push_back({"z", pairs, z, true});
  const BufferId y = add_output(engine.main, "y", pairs);
  engine.main.outputs.back().is_complex = true;
  engine.main.steps = {copy_step(z, y)};
  return engine;
}

TEST(ComplexPorts, HaveComplexDTypesAndOneDimFewer) {
  const EngineOnDisk file(complex_echo());
  const ingot::Engine engine = ingot::Engine::load(file.path());
  for (const ingot::Port& port : {engine.inputs()[0], engine.outputs()[0]}) {
    EXPECT_EQ(port.dtype, ingot::DType::kC64);
    EXPECT_THAT(port.dims, ElementsAre("S", "2"));
  }
}

TEST(ComplexPorts, TakeAndReturnComplexNumbers) {
  const EngineOnDisk file(complex_echo());
  const ingot::Engine engine = ingot::Engine::load(file.path());
  ingot::Context context(engine);
  std::vector<Complex> values = {{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}};
  const auto dense = context.run({ingot::Tensor(std::span(values), {3, 2})});
  EXPECT_EQ(dense[0].dtype(), ingot::DType::kC64);
  EXPECT_THAT(dense[0].shape(), ElementsAre(3, 2));
  EXPECT_THAT(dense[0].values<Complex>(), ::testing::ElementsAreArray(values));
  const auto turned = context.run({ingot::Tensor(values.data(), ingot::DType::kC64, {2, 2}, {1, 3})});
  EXPECT_THAT(turned[0].values<Complex>(), ElementsAre(values[0], values[3], values[1], values[4]));
}

TEST(ComplexPorts, IgnoreStridesThatReadNothing) {
  const EngineOnDisk file(complex_echo());
  const ingot::Engine engine = ingot::Engine::load(file.path());
  ingot::Context context(engine);
  std::vector<Complex> values = {{1, 2}, {3, 4}};
  const auto row = context.run({ingot::Tensor(values.data(), ingot::DType::kC64, {1, 2}, {INT64_MAX, 1})});
  EXPECT_THAT(row[0].values<Complex>(), ::testing::ElementsAreArray(values));
}

std::string refusal_of(ingot::Context& context, const ingot::Tensor& tensor) {
  try {
    context.run({tensor});
  } catch (const ingot::Error& error) {
    return error.what();
  }
  return "";
}

TEST(ComplexPorts, NameComplexTypesInErrors) {
  const EngineOnDisk file(complex_echo());
  const ingot::Engine engine = ingot::Engine::load(file.path());
  ingot::Context context(engine);
  std::vector<float> pairs(8);
  std::vector<Complex> values(18);
  EXPECT_THAT(refusal_of(context, ingot::Tensor(std::span(pairs), {2, 2, 2})),
              HasSubstr("has 3 dims, but the model takes c64[S,2]"));
  EXPECT_THAT(refusal_of(context, ingot::Tensor(std::span(pairs), {4, 2})),
              HasSubstr("is f32, but the model takes c64[S,2]"));
  EXPECT_THAT(refusal_of(context, ingot::Tensor(std::span(values), {6, 3})),
              HasSubstr("dim 1 of input 'z' (c64[S,2]) is 3, but the model expects 2"));
}

TEST(ComplexPorts, AreOfPairs) {
  EngineData engine = complex_echo();
  engine.main.inputs[0].is_complex = false;
  EXPECT_NO_THROW(EngineOnDisk{engine});
  engine = echo_engine();
  engine.main.inputs[0].is_complex = true;  // f32[B, S]
  const EngineOnDisk file(engine);
  ingot_engine* loaded = nullptr;
  EXPECT_EQ(code_of(ingot_engine_load(file.path().c_str(), nullptr, &loaded)), "INGOT-U206");
}

}  // namespace
}  // namespace ingot::core::testing
