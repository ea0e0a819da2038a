// SPDX-License-Identifier: Apache-2.0
// Random compositions of operators on the LLVM backend, against the interpreter: new ones in each run, and
// those that once failed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "backends/cpu/execute/execute.h"
#include "backends/fake/execute/execute.h"
#include "ops/ops.h"
#include "support/file.h"
#include "tests/random/maker.h"
#include "tests/random/session.h"

namespace ingot::core::random_graphs {
namespace {

constexpr uint64_t kCases = 50, kShards = 4;  // of each shard
constexpr uint64_t kDeviceCases = 25;

Host& host() {
  static const fake::FakeExecutor device({.seed = 1, .most_microseconds = 20});
  static const Executor* const executors[] = {&cpu::executor(), &device};
  static Host host({.threads = 1}, executors);
  return host;
}

// INGOT_RANDOM_SEED, else a number made of the commit that is checked out, so that each commit tests other
// graphs; 1 where there is no repository.
uint64_t seed() {
  if (const char* given = std::getenv("INGOT_RANDOM_SEED")) return std::strtoull(given, nullptr, 10);
  const std::string command = fmt::format("git -C '{}' rev-parse HEAD 2>/dev/null", INGOT_SOURCE_DIR);
  std::string hash;
  if (FILE* pipe = popen(command.c_str(), "r")) {
    char text[64];
    if (std::fgets(text, sizeof(text), pipe) != nullptr) hash = text;
    pclose(pipe);
  }
  return hash.empty() ? 1 : std::strtoull(hash.substr(0, 12).c_str(), nullptr, 16);
}

class RandomGraphs : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomGraphs, GiveWhatTheInterpreterGives) {
  const uint64_t chosen = seed();
  fmt::print("seed {}, cases {}, {} ...\n", chosen, GetParam(), GetParam() + kShards);
  const std::vector<Build> builds = all_builds();
  for (uint64_t i = 0; i < kCases; ++i) {
    run_case(chosen, GetParam() + i * kShards, builds, host(), [&](const Found& found) {
      ADD_FAILURE() << "keep this as tests/random/corpus/NAME.ir:\n" << describe(chosen, found);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Shard, RandomGraphs, testing::Range(uint64_t{0}, kShards));

// Others than the CPU gets, without code generation: what is tested is the way to the device and back.
TEST(RandomGraphsOnADevice, GiveWhatTheInterpreterGives) {
  const uint64_t chosen = seed() ^ 0xde71ce;
  fmt::print("seed {}\n", chosen);
  for (uint64_t i = 0; i < kDeviceCases; ++i) {
    run_case(chosen, i, device_builds(), host(), [&](const Found& found) {
      ADD_FAILURE() << "keep this as tests/random/corpus/NAME.ir:\n" << describe(chosen, found);
    });
  }
}

TEST(RandomGraphsOnADeviceAndItsHost, GiveWhatTheInterpreterGives) {
  const uint64_t chosen = seed() ^ 0xd1f1de;
  fmt::print("seed {}\n", chosen);
  for (uint64_t i = 0; i < kDeviceCases; ++i) {
    run_case(chosen, i, divided_builds(i + 1), host(), [&](const Found& found) {
      ADD_FAILURE() << "keep this as tests/random/corpus/NAME.ir:\n" << describe(chosen, found);
    });
  }
}

TEST(RandomCorpus, StaysRight) {
  std::vector<Build> builds = all_builds();
  std::ranges::copy(device_builds(), std::back_inserter(builds));
  for (const uint64_t cut : {1, 2}) std::ranges::copy(divided_builds(cut), std::back_inserter(builds));
  const auto folder = std::filesystem::path(INGOT_SOURCE_DIR) / "tests/random/corpus";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".ir") continue;
    const Failure failure = check(read_case(read_text_file(entry.path())), builds, host());
    EXPECT_FALSE(failure.found()) << entry.path() << ", " << to_string(failure.build) << ": "
                                  << failure.problem;
  }
}

TEST(RandomCases, AreMadeOfEveryOperator) {
  std::set<const Op*> seen;
  for (uint64_t i = 0; i < 3000; ++i) {
    const Case test = make_case(case_seed(5, i));
    for (const auto& node : test.graph.nodes()) seen.insert(node->op);
  }
  for (const Op* op : ops::all_ops()) {
    const bool is_made_by_passes =
        op->traits.has(Trait::kFused) || op->traits.has(Trait::kControlFlow) ||
        op->traits.has(Trait::kBindsSize) ||  // shapes of cases are known when made
        op == &ops::relayout || op->name.starts_with("winograd");
    EXPECT_TRUE(is_made_by_passes || seen.contains(op)) << op->name;
  }
}

TEST(RandomCases, SurviveTheirText) {
  for (uint64_t i = 0; i < 50; ++i) {
    const std::string text = write_case(make_case(case_seed(6, i)));
    if (text.find("sha256:") != std::string::npos) continue;  // a literal too long for the text
    EXPECT_EQ(write_case(read_case(text)), text);
  }
}

// Whether the reference of a case allows its first result with an element changed.
template <typename Change>
bool allows_change(const std::string& text, Change&& change) {
  const Reference reference = make_reference(read_case(text));
  Trajectory results = reference.exact;
  results[0].outputs[0] = to_dense(results[0].outputs[0].view());
  change(results[0].outputs[0].view());
  return difference(reference, results).empty();
}

// Sums that cancel may be off by what was lost, comparisons of what was rounded may turn; nothing else may.
TEST(RandomReference, AllowsRoundingAndNothingElse) {
  const auto text = [](std::string_view body) {
    return fmt::format(
        "-- numerics strict\n-- run\n-- input f32 [4] x0000803f0000004000004040000080c0\ngraph g(%x: f32[4]) "
        "{{ {} }}",
        body);
  };
  const auto allows = [](const std::string& text, double error) {
    return allows_change(text, [&](const TensorView& view) {
      const std::vector<int64_t> first(view.shape.size(), 0);
      write_double(view, first, read_double(view, first) + error);
    });
  };
  EXPECT_TRUE(allows(text("%y = exp(%x) return %y"), 1e-6));
  EXPECT_FALSE(allows(text("%y = exp(%x) return %y"), 1e-4));
  EXPECT_FALSE(allows(text("%y = exp(%x) return %y"), std::nan("")));
  const std::string cancels =
      "%a = full() {value=1e6, shape=[4]} %b = add(%x, %a) %y = exp(%x) %c = add(%y, %a) "
      "%d = subtract(%c, %a) return %d";
  EXPECT_TRUE(allows(text(cancels), 0.06)) << "1e6 + exp(1) is known to 1/16";
  EXPECT_FALSE(allows(text(cancels), 20));
  EXPECT_FALSE(allows(text("%y = negate(%x) return %y"), 1e-4)) << "exact";
}

// Each sum of such a row may be an infinity, a number or NaN, by its order: their positions in a sorted row
// too.
TEST(RandomReference, SumsThatMayOverflowMayStandAnywhere) {
  const auto allows = [](const char* largest, int64_t index) {
    const std::string text = fmt::format(
        "-- numerics strict\n-- run\n-- input f32 [1,2] x{0}{0}\n-- input f32 [3,2] x{1}\n"
        "graph g(%x: f32[1, 2], %w: f32[3, 2]) {{ %y = linear(%x, %w) %s, %i = sort(%y) {{axis=1}} return %i "
        "}}",
        largest, "0000803f0000803f00000040000000400000404000004040");
    return allows_change(
        text, [&](const TensorView& view) { write_integer(view, std::vector<int64_t>{0, 0}, index); });
  };
  EXPECT_TRUE(allows("ffff7fff", 2));  // the largest number
  EXPECT_FALSE(allows("0000803f", 2)) << "2, 4 and 6 are in order";
}

// Kernels multiply the sum of a block by its scale, the interpreter each of its weights.
TEST(RandomReference, ScalesMayMultiplySumsOrWeights) {
  const auto allows = [](const char* scale, double value) {
    const std::string text = fmt::format(
        "-- numerics strict\n-- run\n-- input f32 [1,2] x0000803f0000803f\n-- input i8 [1,2] x0001\n"
        "-- input f32 [1,1] x{}\n"
        "graph g(%x: f32[1, 2], %w: i8[1, 2], %s: f32[1, 1]) {{ %y = scaled_linear(%x, %w, %s) return %y }}",
        scale);
    return allows_change(
        text, [&](const TensorView& view) { write_double(view, std::vector<int64_t>{0, 0}, value); });
  };
  EXPECT_TRUE(allows("0000807f", INFINITY)) << "(0 + 1) * inf";
  EXPECT_TRUE(allows("0000807f", NAN)) << "0 * inf + 1 * inf";
  EXPECT_TRUE(allows("00000040", 2));
  EXPECT_FALSE(allows("00000040", 2.01));
  EXPECT_FALSE(allows("00000040", INFINITY));
}

}  // namespace
}  // namespace ingot::core::random_graphs
