// SPDX-License-Identifier: Apache-2.0
// Routines reject inconsistent tensors: engine files may claim anything.
#include "routines/routine_table.h"

#include <gmock/gmock.h>

#include <cstring>

#include "support/error.h"

namespace ingot::core {
namespace {

struct Call {
  std::string routine;
  NamedValues attributes;
  std::vector<Tensor> inputs, outputs;

  void run() const {
    std::vector<TensorView> from, to;
    for (const Tensor& input : inputs) from.push_back(input.view());
    for (const Tensor& output : outputs) to.push_back(output.view());
    find_routine(routine)->run({.inputs = from, .outputs = to, .attributes = attributes});
  }
  std::string refusal() const {
    try {
      run();
    } catch (const UserError& error) {
      return std::string(error.details().code);
    }
    return "";
  }
};

Tensor zeros(std::vector<int64_t> shape, DType dtype = DType::kF32) {
  return make_tensor(dtype, std::move(shape));
}

Call sort() {
  return {"sort",
          {{"axis", 1}, {"descending", false}},
          {zeros({2, 3})},
          {zeros({2, 3}), zeros({2, 3}, DType::kI64)}};
}
Call top_k() {
  return {"top_k",
          {{"axis", 0}, {"largest", true}},
          {zeros({4, 3})},
          {zeros({2, 3}), zeros({2, 3}, DType::kI64)}};
}
Call select(std::string routine) {
  return {std::move(routine),
          {{"axis", 1}, {"rank", 2}},
          {zeros({2, 3})},
          {zeros({2, 1}), zeros({2, 1}, DType::kI64)}};
}
Call scatter() {
  return {"scatter_add",
          {{"axis", 0}},
          {zeros({4, 3}), zeros({2, 3}, DType::kI64), zeros({2, 3})},
          {zeros({4, 3})}};
}
Call gru() {
  return {"gru",
          {},
          {zeros({2, 3, 12}), zeros({1, 3, 4}), zeros({1, 1, 4, 3, 16})},
          {zeros({2, 3, 4}), zeros({1, 3, 4})}};
}
Call rnn() {
  return {"rnn",
          {{"relu", true}},
          {zeros({2, 3, 4}), zeros({1, 3, 4}), zeros({1, 1, 4, 1, 16})},
          {zeros({2, 3, 4}), zeros({1, 3, 4})}};
}

TEST(Routines, RunOnWhatFits) {
  for (const Call& call : {sort(), top_k(), select("median"), select("kth_value"), scatter(), gru(), rnn()})
    EXPECT_EQ(call.refusal(), "") << call.routine;
}

TEST(Routines, RefuseTooFewAndTooManyTensors) {
  for (Call call : {sort(), top_k(), select("median"), select("kth_value"), scatter(), gru(), rnn()}) {
    Call fewer = call;
    fewer.inputs.pop_back();
    EXPECT_EQ(fewer.refusal(), "INGOT-U332") << call.routine;
    call.outputs.push_back(call.outputs[0]);
    EXPECT_EQ(call.refusal(), "INGOT-U332") << call.routine;
  }
}

TEST(Routines, RefuseAnAxisThatIsNotThere) {
  for (Call call : {sort(), scatter()}) {
    for (const int64_t axis : {2, -1}) {
      call.attributes = {{"axis", axis}, {"descending", false}};
      EXPECT_EQ(call.refusal(), "INGOT-U332") << call.routine;
    }
  }
}

TEST(Routines, RejectAttributesThatAreMissingOrOfAnotherKind) {
  Call call = sort();
  call.attributes = {{"descending", false}};
  EXPECT_EQ(call.refusal(), "INGOT-U330");
  call.attributes = {{"axis", "1"}, {"descending", false}};
  EXPECT_EQ(call.refusal(), "INGOT-U331");
}

TEST(Routines, RefuseToSelectMoreThanThereIs) {
  Call call = top_k();
  call.outputs = {zeros({5, 3}), zeros({5, 3}, DType::kI64)};
  EXPECT_EQ(call.refusal(), "INGOT-U332");
  call = top_k();
  call.outputs[1] = zeros({2, 3});
  EXPECT_EQ(call.refusal(), "INGOT-U332");
}

TEST(Routines, RefuseToSelectWhatIsNotThere) {
  Call call = select("kth_value");
  for (const int64_t rank : {3, -1}) {
    call.attributes = {{"axis", 1}, {"rank", rank}};
    EXPECT_EQ(call.refusal(), "INGOT-U332") << rank;
  }
  call = select("median");
  call.inputs = {zeros({2, 0})};
  EXPECT_EQ(call.refusal(), "INGOT-U332");
  call = select("median");
  call.outputs = {zeros({2, 2}), zeros({2, 2}, DType::kI64)};
  EXPECT_EQ(call.refusal(), "INGOT-U332");
}

TEST(Routines, RefuseIndicesBesideTheTensor) {
  Call call = scatter();
  call.inputs[1] = zeros({2, 4}, DType::kI64);
  call.inputs[2] = zeros({2, 4});
  EXPECT_EQ(call.refusal(), "INGOT-U332");
  call = scatter();
  call.inputs[1] = zeros({2, 3});
  EXPECT_EQ(call.refusal(), "INGOT-U332");
  call = scatter();
  call.outputs[0] = zeros({3, 3});
  EXPECT_EQ(call.refusal(), "INGOT-U332");
}

TEST(Routines, WrapSumsOfIntegersThatOverflow) {
  const auto one = [](int64_t value) {
    Tensor tensor = zeros({1}, DType::kI64);
    std::memcpy(tensor.data.get(), &value, sizeof(value));
    return tensor;
  };
  const std::vector<Tensor> inputs = {one(INT64_MAX), one(0), one(1)};
  for (const Call& call :
       {Call{"scatter_add", {{"axis", 0}}, inputs, {one(0)}},
        Call{"scatter_reduce", {{"axis", 0}, {"reduce", "sum"}, {"include_self", true}}, inputs, {one(0)}}}) {
    call.run();
    EXPECT_EQ(std::memcmp(call.outputs[0].data.get(), one(INT64_MIN).data.get(), sizeof(int64_t)), 0);
  }
}

}  // namespace
}  // namespace ingot::core
