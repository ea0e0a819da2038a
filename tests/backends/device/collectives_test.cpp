// SPDX-License-Identifier: Apache-2.0
// Collectives in programs on devices: each rank is a thread with a device of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/refit.h"
#include "tests/backends/device/device_graphs.h"
#include "tests/backends/device/device_run.h"
#include "tests/ranks/ranks.h"

namespace ingot::core::test {
namespace {

using ::testing::Each;
using ::testing::StartsWith;

constexpr int kRanks = 2;
constexpr size_t kOutputs = 6;

// All of them, between kernels.
constexpr std::string_view kAll = R"(graph main(%x: f32[R in 1..64, 4], %h: f16[4, 6], %i: i64[4]) {
  %a = exp(%x) : f32[R, 4]
  %s = all_reduce(%a) {group="tp", ranks=2, reduction="avg"} : f32[R, 4]
  %y = negate(%s) : f32[R, 4]
  %g = all_gather(%y) {group="tp", ranks=2} : f32[2 * R, 4]
  %z = negate(%g) : f32[2 * R, 4]
  %p = reduce_scatter(%h) {group="tp", ranks=2, reduction="sum"} : f16[2, 6]
  %b = broadcast(%i) {group="tp", ranks=2, source=1} : i64[4]
  %t = all_to_all(%b) {group="tp", ranks=2, sent=[], received=[]} : i64[4]
  %m = all_reduce(%t) {group="tp", ranks=2, reduction="max"} : i64[4]
  return %s, %z, %p, %b, %t, %m
})";
constexpr std::string_view kWeighted = R"(graph main(%x: f32[8]) {
  %w = weight() {name="w", shape=[8]} : f32[8]
  %a = add(%x, %w) : f32[8]
  %s = all_reduce(%a) {group="tp", ranks=2, reduction="sum"} : f32[8]
  %y = negate(%s) : f32[8]
  return %y
})";

std::vector<Tensor> inputs_of(int rank, int64_t rows) {
  Tensor half = make_tensor(DType::kF16, {4, 6});
  for (int64_t k = 0; k < half.elements(); ++k)
    reinterpret_cast<uint16_t*>(half.data.get())[k] = float_to_half(static_cast<float>(k + 3 * rank));
  return {counted({rows, 4}, static_cast<float>(rank) / 8), half, integers({rank, 5, 7 - rank, 9})};
}

using Rank = std::function<void(int rank, Device& device, const ContextOptions& options)>;
std::vector<std::string> run_on_devices(bool has_collectives, const Rank& work) {
  const testing::Groups groups = testing::connected(kRanks);
  return testing::run_ranks(kRanks, [&](int rank) {
    Device device(static_cast<uint64_t>(rank + 1), has_collectives);
    ContextOptions options;
    options.groups.push_back({"tp", groups[static_cast<size_t>(rank)]});
    work(rank, device, options);
  });
}

// Of all ranks and calls, each of which has so many rows.
using Results = std::vector<std::vector<std::vector<Tensor>>>;
Results results_of(std::string_view text, bool has_collectives, const std::vector<int64_t>& rows,
                   int64_t repeats) {
  Results results(kRanks);
  const auto errors = run_on_devices(has_collectives, [&](int rank, Device& device, const auto& options) {
    Context context(device.build(parsed(text)), options);
    for (const int64_t count : rows)
      results[static_cast<size_t>(rank)].push_back(
          call(device, context, inputs_of(rank, count), Where::kHost, Where::kHost));
    EXPECT_EQ(device.executor.counts().repeats, repeats);
  });
  EXPECT_THAT(errors, Each(""));
  for (auto& each : results) each.resize(rows.size(), std::vector<Tensor>(kOutputs));
  return results;
}

TEST(DeviceCollectives, AreRepeatedWithoutALookAtTheCalls) {
  // A list is captured at its second use, named then, and repeated from its third use on.
  const std::vector<int64_t> rows = {5, 3, 3, 3, 3, 5, 3, 5, 5, 3};
  const Results device = results_of(kAll, true, rows, 6), host = results_of(kAll, false, rows, 0);
  for (size_t rank = 0; rank < kRanks; ++rank) {
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t k = 0; k < kOutputs; ++k)
        EXPECT_TRUE(same_bits(device[rank][i][k], host[rank][i][k])) << rank << ", " << i << ", " << k;
    }
  }
}

TEST(DeviceCollectives, SeeNewWeights) {
  for (const bool has_collectives : {true, false}) {
    const auto errors = run_on_devices(has_collectives, [&](int rank, Device& device, const auto& options) {
      const auto engine = device.build(model_with(kWeighted, {{"w", counted({8}, 1)}}));
      Context context(engine, options);
      const Tensor x = counted({8}, static_cast<float>(rank));
      for (int i = 0; i < 12; ++i) {
        const float first = static_cast<float>(1 + i / 4 * 100);
        const Tensor next = counted({8}, first);
        if (i % 4 == 0) engine->refit({{"w", OwnedView{next.view(), next.data}}}, Coverage::kAll);
        const std::vector<Tensor> result = call(device, context, {x}, Where::kHost, Where::kHost);
        EXPECT_EQ(reinterpret_cast<const float*>(result[0].data.get())[0], -(2 * first + 1)) << i;
      }
    });
    EXPECT_THAT(errors, Each(""));
  }
}

TEST(DeviceCollectives, FailWhenARankHasLeft) {
  const auto errors = run_on_devices(true, [&](int rank, Device& device, const auto& options) {
    Context context(device.build(parsed(kAll)), options);
    for (int i = 0; i < 4; ++i) call(device, context, inputs_of(rank, 3), Where::kHost, Where::kHost);
    if (rank == 1) return options.groups[0].group->leave("it has had enough");
    call(device, context, inputs_of(rank, 3), Where::kHost, Where::kHost);
  });
  EXPECT_THAT(errors[0], StartsWith("INGOT-D350"));
  EXPECT_EQ(errors[1], "");
}

}  // namespace
}  // namespace ingot::core::test
