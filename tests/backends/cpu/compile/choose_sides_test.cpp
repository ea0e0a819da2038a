// SPDX-License-Identifier: Apache-2.0
// Which nodes go to the host, why, and what engines and reports say of it.
#include "partition/choose_sides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error.h"
#include "tests/backends/cpu/compile/divided_device.h"

namespace ingot::core::test {
namespace {

using ::testing::ElementsAre;

// The fake device's, without kernels for some operators, or with slow ones.
class PickyBackend final : public Backend {
 public:
  std::string lacks, is_slow_at;
  double slow_ns = 1e9, ns = 1000;

  std::string_view name() const override { return inner_.name(); }
  std::string_view generator() const override { return inner_.generator(); }
  std::string device(std::string_view words) const override { return inner_.device(words); }
  Place place() const override { return inner_.place(); }
  Support supports(const Node& node, const SymbolValues& sizes, const Target& target) const override {
    if (node.op->name == lacks) return {Support::Answer::kNo, "there is no kernel"};
    if (node.op->name == is_slow_at) return {Support::Answer::kSlow, "it is slow", slow_ns, slow_ns / 2};
    return inner_.supports(node, sizes, target);
  }
  double predicted_ns(const Node&, const SymbolValues&, const Target&) const override { return ns; }
  LayoutRequest layouts(const Node& node, const Target& target) const override {
    return inner_.layouts(node, target);
  }
  FusionAnswer may_fuse_consumer(const Node& a, const Node& b, const Target& target) const override {
    return inner_.may_fuse_consumer(a, b, target);
  }
  FusionAnswer may_fuse_producer(const Node& a, const Node& b, const Target& target) const override {
    return inner_.may_fuse_producer(a, b, target);
  }
  std::vector<LoweredStep> lower(const Node& node, const SymbolTable& symbols,
                                 const Target& target) const override {
    return inner_.lower(node, symbols, target);
  }

 private:
  const Backend& inner_ = fake::backend();
};

constexpr std::string_view kRow =
    "graph g(%x: f32[64, 8]) { %a = exp(%x) %b = negate(%a) %c = softmax(%b) {axis=1} %d = sigmoid(%c) "
    "%e = negate(%d) %f = softmax(%e) {axis=1} return %f }";

struct Built {
  std::vector<std::string> runners;
  BuildReport report;
};

Built build(DividedDevice& device, std::string_view text, int level = 0) {
  Built built;
  built.runners =
      runners_of(device
                     .compile(model_with(text, {{"w", counted({4096, 64})}, {"v", counted({64, 4096})}}),
                              level, &built.report)
                     ->main);
  return built;
}

std::vector<std::string> reasons_of(const Built& built) {
  std::vector<std::string> reasons;
  for (const ChosenBackend& each : built.report.nodes.backends)
    reasons.push_back(each.op + " on " + each.backend + ": " + each.reason);
  return reasons;
}

TEST(ChooseSides, WithoutAReasonEverythingFollowsTheDevice) {
  DividedDevice device;
  const Built built = build(device, kRow);
  EXPECT_THAT(built.runners, ::testing::Each("fake"));
  EXPECT_TRUE(built.report.nodes.backends.empty());
}

TEST(ChooseSides, WhatTheDeviceDoesNotSupportRunsOnTheHost) {
  PickyBackend backend;
  backend.lacks = "sigmoid";
  DividedDevice device;
  device.backend = &backend;
  const Built built = build(device, kRow);
  EXPECT_THAT(built.runners, ElementsAre("fake", "fake", "fake", "copy", "cpu", "copy", "fake", "fake"));
  EXPECT_THAT(reasons_of(built), ElementsAre("sigmoid on cpu: there is no kernel"));
  device.host_backend = nullptr;
  EXPECT_EQ(code_of_call([&] { build(device, kRow); }), "INGOT-N001") << "an engine of the device alone";
}

TEST(ChooseSides, WhatIsSlowRunsOnTheHostIfThatIsWorthTheCopies) {
  PickyBackend backend;
  backend.is_slow_at = "sigmoid";
  DividedDevice device;
  device.backend = &backend;
  const Built built = build(device, kRow);
  EXPECT_THAT(built.runners, ElementsAre("fake", "fake", "fake", "copy", "cpu", "copy", "fake", "fake"));
  EXPECT_TRUE(built.report.slow.empty());
  backend.slow_ns = 10'000;  // less than two copies
  const Built kept = build(device, kRow);
  EXPECT_THAT(kept.runners, ::testing::Each("fake"));
  ASSERT_EQ(kept.report.slow.size(), 1u);
  EXPECT_EQ(kept.report.slow[0].op, "sigmoid");
}

TEST(ChooseSides, SmallNodesBetweenNodesOfTheHostGoThereToo) {
  DividedDevice device(Choices{{"softmax", "cpu"}});
  const Built built = build(device, kRow);
  EXPECT_THAT(built.runners, ElementsAre("fake", "fake", "copy", "cpu", "cpu", "cpu", "cpu", "copy"));
  EXPECT_EQ(reasons_of(built)[1], "sigmoid on cpu: what is around it runs on the host: it saves copies");
  device.backend_of.push_back({"sigmoid", "fake"});
  const Built named = build(device, kRow);
  EXPECT_EQ(std::ranges::count(named.runners, "copy"), 4);
  EXPECT_THAT(reasons_of(named), ::testing::Contains("sigmoid on fake: backend_of names it"));
}

TEST(ChooseSides, LargeNodesBetweenNodesOfTheHostStayOnTheDevice) {
  DividedDevice device(Choices{{"softmax", "cpu"}});
  const Built built =
      build(device,
            "graph g(%x: f32[64, 64]) { %w = weight() {name=\"w\", shape=[4096, 64]} : f32[4096, 64] "
            "%v = weight() {name=\"v\", shape=[64, 4096]} : f32[64, 4096] %c = softmax(%x) {axis=1} "
            "%d = linear(%c, %w) %e = linear(%d, %v) %f = softmax(%e) {axis=1} return %f }");
  EXPECT_THAT(built.runners, ElementsAre("copy", "cpu", "copy", "fake", "fake", "copy", "cpu", "copy"));
}

TEST(ChooseSides, TheFirstPatternThatFitsCounts) {
  DividedDevice device(Choices{{"soft*", "fake"}, {"*", "cpu"}});
  EXPECT_EQ(std::ranges::count(build(device, kRow).runners, "fake"), 2);
}

TEST(ChooseSides, PatternsThatFitNothingAreReported) {
  DividedDevice device(Choices{{"softmax", "cpu"}, {"cosine", "cpu"}, {"decoder*", "fake"}});
  EXPECT_THAT(build(device, kRow).report.unused_backend_of, ElementsAre("cosine", "decoder*"));
}

TEST(ChooseSides, OtherBackendsThanTheEnginesAreErrors) {
  DividedDevice device(Choices{{"softmax", "cuda"}});
  EXPECT_EQ(code_of_call([&] { build(device, kRow); }), "INGOT-U002");
  device.backend_of = {{"softmax", "cpu"}};
  device.host_backend = nullptr;
  EXPECT_EQ(code_of_call([&] { build(device, kRow); }), "INGOT-U002");
}

TEST(ChooseSides, NoRegionHasNodesOfBoth) {
  DividedDevice device(Choices{{"exp", "fake"}, {"negate", "cpu"}});
  const Built built =
      build(device, "graph g(%x: f32[64]) { %a = exp(%x) %b = negate(%a) %c = exp(%b) return %c }", 3);
  EXPECT_THAT(built.runners, ElementsAre("fake", "copy", "cpu", "copy", "fake"));
}

TEST(ChooseSides, ValuesOfTheHostAloneHaveNoMemoryOnTheDevice) {
  DividedDevice device(Choices{{"softmax", "cpu"}});
  const auto data = device.compile(model_with(kRow, {}), 0);
  int on_host = 0, in_arena_of_device = 0;
  for (const Buffer& buffer : data->main.buffers) {
    on_host += buffer.place == Place{} ? 1 : 0;
    in_arena_of_device += buffer.place != Place{} && buffer.as<ArenaStorage>() != nullptr ? 1 : 0;
  }
  EXPECT_EQ(on_host, 2) << "what the first softmax reads, and what becomes the output";
  EXPECT_EQ(in_arena_of_device, 1) << "what the first softmax reads";
}

}  // namespace
}  // namespace ingot::core::test
