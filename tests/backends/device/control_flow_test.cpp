// SPDX-License-Identifier: Apache-2.0
// Branches and loops on a device: conditions that it computes, graphs that it runs.
#include <gtest/gtest.h>

#include "tests/backends/device/device_graphs.h"
#include "tests/backends/device/device_run.h"

namespace ingot::core::test {
namespace {

// Both graphs have memory of their own, and a weight.
constexpr std::string_view kBranches = R"(graph g(%x: f32[S in 1..64, 8]) {
  %w = weight() {name="w", shape=[8, 8]} : f32[8, 8]
  %zero = full() {value=0} : f32[]
  %sum = sum(%x) {axes=[0, 1]} : f32[]
  %positive = less(%zero, %sum) : bool[]
  %y, %z = branch(%positive, %x, %w) {
    graph then(%a: f32[S, 8], %v: f32[8, 8]) {
      %b = linear(%a, %v) : f32[S, 8]
      %c = multiply(%b, %b) : f32[S, 8]
      return %c, %b
    }
    graph otherwise(%a: f32[S, 8], %v: f32[8, 8]) {
      %b = negate(%a) : f32[S, 8]
      return %b, %a
    }
  } : f32[S, 8], f32[S, 8]
  %l = linear(%y, %w) : f32[S, 8]
  %r = add(%l, %z) : f32[S, 8]
  return %r
})";

// x + 0 + 1 + ... while i < n, in a loop around a branch.
constexpr std::string_view kLoops = R"(graph g(%x: f32[S in 1..64], %n: i64[], %go: bool[]) {
  %y, %z = loop(%go, %x, %x, %n) {
    graph body(%i: i64[], %a: f32[S], %b: f32[S], %end: i64[]) {
      %step = convert(%i) {dtype=f32} : f32[]
      %c = add(%a, %step) : f32[S]
      %sum = sum(%c) {axes=[0]} : f32[]
      %limit = full() {value=20} : f32[]
      %small = less(%sum, %limit) : bool[]
      %d = branch(%small, %c, %b) {
        graph then(%p: f32[S], %q: f32[S]) {
          %e = exp(%q) : f32[S]
          %f = add(%p, %e) : f32[S]
          return %f
        }
        graph otherwise(%p: f32[S], %q: f32[S]) {
          return %p
        }
      } : f32[S]
      %more = less(%i, %end) : bool[]
      return %more, %d, %c
    }
  } : f32[S], f32[S]
  %r = add(%y, %z) : f32[S]
  return %r, %y
})";

// Bodies read parts of values of their own, where a position is that an outer node binds.
constexpr std::string_view kPositions = R"(graph g(%x: f32[6, 4], %n: i64[], %go: bool[]) {
  symbol N at most 5
  %at = bind_size(%n) {size=N} : i64[]
  %y = loop(%go, %x, %n) {
    graph body(%i: i64[], %a: f32[6, 4], %end: i64[]) {
      %e = sin(%a) : f32[6, 4]
      %p = slice(%e) {axis=0, start=N, end=N + 1} : f32[1, 4]
      %c = cos(%e) : f32[6, 4]
      %b = multiply(%c, %p) : f32[6, 4]
      %more = less(%i, %end) : bool[]
      return %more, %b
    }
  } : f32[6, 4]
  %z = branch(%go, %y) {
    graph then(%a: f32[6, 4]) {
      %e = negate(%a) : f32[6, 4]
      %p = slice(%e) {axis=0, start=5 - N, end=6 - N} : f32[1, 4]
      %c = exp(%e) : f32[6, 4]
      %b = add(%c, %p) : f32[6, 4]
      return %b
    }
    graph otherwise(%a: f32[6, 4]) {
      return %a
    }
  } : f32[6, 4]
  return %z
})";

Tensor scalar(DType dtype, int64_t value) {
  Tensor tensor = make_tensor(dtype, {});
  write_integer(tensor.view(), {}, value);
  return tensor;
}

class DeviceControlFlow : public ::testing::TestWithParam<uint64_t> {
 protected:
  void expect_same(Context& context, std::string_view text, const std::vector<Tensor>& inputs,
                   const TensorMap& weights = {}) {
    const std::vector<Tensor> expected = evaluate(parsed(text), inputs, weights).outputs;
    for (const Where where : {Where::kHost, Where::kDevice}) {
      std::vector<Tensor> given;
      for (const Tensor& input : inputs)
        given.push_back(where == Where::kHost ? input : device_.copy_to_device(input));
      const std::vector<Tensor> got = call(device_, context, given, where, Where::kHost);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << "output " << i;
    }
  }

  Device device_{GetParam()};
};

TEST_P(DeviceControlFlow, BranchesFollowTheValues) {
  const TensorMap weights = {{"w", counted({8, 8}, -3)}};
  for (const int level : {0, 3}) {
    Context context(device_.build(model_with(kBranches, weights), level));
    for (int again = 0; again < 3; ++again) {
      for (const int64_t rows : {1, 5, 64}) {
        expect_same(context, kBranches, {counted({rows, 8}, 1)}, weights);
        expect_same(context, kBranches, {counted({rows, 8}, -200)}, weights);
      }
    }
  }
}

TEST_P(DeviceControlFlow, LoopsEndWhenTheirConditionSaysSo) {
  for (const int level : {0, 3}) {
    Context context(device_.build(parsed(kLoops), level));
    for (const int64_t end : {0, 1, 2, 7}) {
      for (const int64_t go : {1, 0})
        expect_same(context, kLoops, {counted({5}, 1), scalar(DType::kI64, end), scalar(DType::kBool, go)});
    }
  }
}

TEST_P(DeviceControlFlow, BodiesReadAtPositionsThatAreFound) {
  for (const int level : {0, 3}) {
    Context context(device_.build(parsed(kPositions), level));
    for (const int64_t position : {2, 0, 5, 5, 1}) {
      for (const int64_t go : {1, 0})
        expect_same(context, kPositions,
                    {counted({6, 4}, -3), scalar(DType::kI64, position), scalar(DType::kBool, go)});
    }
  }
}

// The bodies of loops are captured, although the loop is not.
TEST_P(DeviceControlFlow, IterationsAreReplayed) {
  Context context(device_.build(parsed(kLoops)));
  const std::vector<Tensor> inputs = {counted({5}, 1), scalar(DType::kI64, 20), scalar(DType::kBool, 1)};
  expect_same(context, kLoops, inputs);
  EXPECT_GE(device_.executor.counts().replays, 10);
}

TEST_P(DeviceControlFlow, WeightsOfBranchesStayWhenOthersStream) {
  const TensorMap weights = {{"w", counted({8, 8}, -3)}};
  const std::shared_ptr<Engine> engine = device_.build(model_with(kBranches, weights));
  engine->set_weight_budget({.kind = WeightBudget::Kind::kBytes, .bytes = 0});
  Context context(engine);
  expect_same(context, kBranches, {counted({5, 8}, 1)}, weights);
}

INSTANTIATE_TEST_SUITE_P(Seeds, DeviceControlFlow, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace ingot::core::test
