// SPDX-License-Identifier: Apache-2.0
// Tensors that callers of an engine pass and get as numbers.
#include <gmock/gmock.h>

#include "support/error.h"
#include "tests/engine/engines.h"

namespace ingot::core {
namespace {

using ::testing::HasSubstr;
using testing::open;
using testing::to_bytes;

// "" if the file is opened.
std::string cause_of_refusal(const EngineData& engine) {
  try {
    open(to_bytes(engine));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// Copies an input to an output, both of which the signature calls numbers.
EngineData copying_a_number(const TensorType& type) {
  EngineData engine{.name = "number", .origin = "a test", .key = "key of number", .target = "null"};
  const BufferId x = testing::add_input(engine.main, "x", type);
  engine.main.steps = {testing::copy_step(x, testing::add_output(engine.main, "y", type))};
  engine.signature = {.inputs = {PlainValue(int64_t{3}), TensorSlot{.is_number = true}},
                      .outputs = {PlainValue(2.5), TensorSlot{.is_number = true}}};
  return engine;
}

TEST(NumberSlots, KeepsWhichTensorsAreNumbers) {
  for (const DType dtype : {DType::kI64, DType::kF64, DType::kBool}) {
    const EngineData engine = copying_a_number({dtype, {}, {}});
    const auto file = open(to_bytes(engine));
    EXPECT_EQ(file->data().signature.inputs, engine.signature.inputs);
    EXPECT_EQ(file->data().signature.outputs, engine.signature.outputs);
  }
}

TEST(NumberSlots, RefusesNumbersThatAreOtherTensors) {
  for (const TensorType& type :
       {TensorType{DType::kI64, {1}, {}}, {DType::kF32, {}, {}}, {DType::kI32, {}, {}}}) {
    EngineData engine = copying_a_number(type);
    EXPECT_THAT(cause_of_refusal(engine), HasSubstr("'x' is not a number, as the signature says"));
    engine.signature.inputs[1] = TensorSlot{};
    EXPECT_THAT(cause_of_refusal(engine), HasSubstr("'y' is not a number, as the signature says"));
    engine.signature.outputs[1] = TensorSlot{};
    EXPECT_EQ(cause_of_refusal(engine), "");
  }
}

}  // namespace
}  // namespace ingot::core
