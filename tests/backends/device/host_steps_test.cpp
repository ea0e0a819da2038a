// SPDX-License-Identifier: Apache-2.0
// Routines in programs on a device: the host works on copies.
#include "plan/host_steps.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/backends/device/device_graphs.h"
#include "tests/backends/device/device_run.h"

namespace ingot::core::test {
namespace {

constexpr int kAsWritten = 0;  // the level that changes no graph

Tensor mixed(std::vector<int64_t> shape) {
  Tensor tensor = make_tensor(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < tensor.elements(); ++i)
    reinterpret_cast<float*>(tensor.data.get())[i] = static_cast<float>((i * 7 + 3) % 5 - 2);
  return tensor;
}

void expect_same_on_a_device(const std::string& text, const std::vector<std::vector<Tensor>>& runs,
                             const TensorMap& weights = {}) {
  Device device;
  Context context(device.build(model_with(text, weights), kAsWritten));
  for (int again = 0; again < 2; ++again) {
    for (const std::vector<Tensor>& inputs : runs) {
      const std::vector<Tensor> actual = call_by_copies(device, context, inputs);
      const std::vector<Tensor> expected = evaluate(parsed(text), inputs, weights).outputs;
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < actual.size(); ++i)
        EXPECT_TRUE(same_bits(actual[i], expected[i])) << "output " << i;
    }
  }
}

TEST(HostSteps, AreBetweenKernelsOfAnySize) {
  const std::string text = R"(graph main(%x: f32[B in 0..16, 8]) {
    %a = exp(%x) : f32[B, 8]
    %s, %i = sort(%a) {axis=1, descending=true} : f32[B, 8], i64[B, 8]
    %b = negate(%s) : f32[B, 8]
    return %b, %i, %a
  })";
  expect_same_on_a_device(text, {{mixed({4, 8})}, {mixed({16, 8})}, {mixed({0, 8})}, {mixed({1, 8})}});
}

TEST(HostSteps, AreFirstAndLast) {
  expect_same_on_a_device(R"(graph main(%x: f32[3, 8]) {
    %s, %i = sort(%x) {axis=1, descending=false} : f32[3, 8], i64[3, 8]
    return %s, %i
  })",
                          {{mixed({3, 8})}});
}

TEST(HostSteps, FollowEachOtherWithoutCopiesBetweenThem) {
  const std::string text = R"(graph main(%x: f32[3, 8]) {
    %a = exp(%x) : f32[3, 8]
    %s, %i = sort(%a) {axis=1, descending=false} : f32[3, 8], i64[3, 8]
    %t, %j = top_k(%s) {axis=1, count=2, largest=true} : f32[3, 2], i64[3, 2]
    %m, %k = median(%s) {axis=1} : f32[3, 1], i64[3, 1]
    %y = add(%t, %m) : f32[3, 2]
    return %y
  })";
  expect_same_on_a_device(text, {{mixed({3, 8})}});
  const auto data = Device().compile(model_with(text, {}), kAsWritten);
  const auto is_copy = [](const Step& step) { return step.as<CopyStep>() != nullptr; };
  EXPECT_EQ(std::ranges::count_if(data->main.steps, is_copy), 3) << "of a, t and m";
}

TEST(HostSteps, ReadViewsAndWeightsAndWriteWhatIsViewed) {
  expect_same_on_a_device(R"(graph main(%x: f32[4, 6]) {
    %w = weight() {name="w", shape=[24]} : f32[24]
    %v = reshape(%x) {shape=[24]} : f32[24]
    %a = add(%v, %w) : f32[24]
    %p = slice(%a) {axis=0, start=6, end=12} : f32[6]
    %s, %i = sort(%p) {axis=0, descending=true} : f32[6], i64[6]
    %r = reshape(%s) {shape=[2, 3]} : f32[2, 3]
    %t = slice(%s) {axis=0, start=2, end=4} : f32[2]
    %y = negate(%r) : f32[2, 3]
    %z, %j = sort(%w) {axis=0, descending=true} : f32[24], i64[24]
    %u = negate(%t) : f32[2]
    return %y, %a, %z, %u
  })",
                          {{mixed({4, 6})}}, {{"w", mixed({24})}});
}

TEST(HostSteps, SeeWhatKernelsWroteSinceTheirCopyWasMade) {
  expect_same_on_a_device(R"(graph main(%x: f32[8]) {
    %a = exp(%x) : f32[8]
    %s, %i = sort(%a) {axis=0, descending=true} : f32[8], i64[8]
    %b = negate(%a) : f32[8]
    %t, %j = sort(%b) {axis=0, descending=true} : f32[8], i64[8]
    %c = negate(%b) : f32[8]
    %u, %k = sort(%c) {axis=0, descending=false} : f32[8], i64[8]
    %y = add(%s, %t) : f32[8]
    %z = add(%y, %u) : f32[8]
    return %z
  })",
                          {{mixed({8})}});
}

TEST(HostSteps, BindSizesOfBuffersOnTheDevice) {
  expect_same_on_a_device(R"(graph main(%x: f32[6]) {
    symbol N at most 6
    %zero = full() {value=0, shape=[1]} : f32[1]
    %m = less(%zero, %x) : bool[6]
    %i = convert(%m) {dtype=i64} : i64[6]
    %n = sum(%i) {axes=[0]} : i64[]
    %c = bind_size(%n) {size=N} : i64[]
    %at = nonzero(%m, %c) {size=N} : i64[N,1]
    %y = negate(%at) : i64[N,1]
    return %y, %at
  })",
                          {{mixed({6})}});
}

// The part's address is found again in each run, wherever the memory that it is in stays.
TEST(HostSteps, BindPositionsOfPartsOnTheDevice) {
  const std::string text = R"(graph main(%x: f32[6, 4], %w: f32[7]) {
    symbol N at most 5
    %t = weight() {name="t", shape=[6, 4]} : f32[6, 4]
    %e = exp(%x) : f32[6, 4]
    %zero = full() {value=0, shape=[1]} : f32[1]
    %m = less(%zero, %w) : bool[7]
    %i = convert(%m) {dtype=i64} : i64[7]
    %n = sum(%i) {axes=[0]} : i64[]
    %at = bind_size(%n) {size=N} : i64[]
    %p = slice(%e) {axis=0, start=N, end=N + 1} : f32[1, 4]
    %q = slice(%t) {axis=0, start=N, end=N + 1} : f32[1, 4]
    %y = multiply(%p, %q) : f32[1, 4]
    %s = add(%x, %e) : f32[6, 4]
    return %y, %s
  })";
  const auto found = [](int count) {
    Tensor tensor = counted({7}, -100);
    for (int i = 0; i < count; ++i) reinterpret_cast<float*>(tensor.data.get())[i] = 1;
    return tensor;
  };
  const Tensor x = mixed({6, 4});
  expect_same_on_a_device(text, {{x, found(2)}, {x, found(0)}, {x, found(5)}, {x, found(2)}},
                          {{"t", counted({6, 4}, -9)}});
}

}  // namespace
}  // namespace ingot::core::test
