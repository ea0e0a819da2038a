// SPDX-License-Identifier: Apache-2.0
#include "compiler/bisect.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <set>

#include "support/error.h"

namespace ingot::core {
namespace {

using Outcome = Bisection::Outcome;

// Passes with so many rewrites each, between one of level 0 and another; nodes are called "PASS_REWRITE",
// from 1 on. The result is wrong from the rewrite `culprit` on.
struct FakeCompiler {
  std::vector<size_t> rewrites;
  size_t pass = 0, rewrite = 1;  // the culprit
  std::set<std::string> others;  // nodes whose rewriting alone makes it wrong too
  std::vector<std::string> limits = {};

  TriedBuild operator()(const std::string& limit, const std::string& disabled) {
    limits.push_back(limit + (disabled.empty() ? "" : " without " + disabled));
    const size_t point = limit.find('.');
    const size_t whole = limit == "-1" ? rewrites.size() : std::stoul(limit);
    const size_t part = point == std::string::npos ? 0 : std::stoul(limit.substr(point + 1));
    TriedBuild built{.passes = {{.name = "decompose", .seconds = 0, .changed = true}}};
    for (size_t i = 0; i < rewrites.size() && (i < whole || (i == whole && part > 0)); ++i)
      built.passes.push_back(run(i, i < whole ? rewrites[i] : part, disabled, built));
    built.passes.push_back({.name = "hoist", .seconds = 0, .changed = true});
    return built;
  }

 private:
  // At most `most` rewrites; one that is disabled is not counted.
  PassRunner::Timing run(size_t index, size_t most, const std::string& disabled, TriedBuild& built) const {
    PassRunner::Timing timing{
        .name = fmt::format("pass{}", index), .seconds = 0, .changed = true, .is_optional = true};
    for (size_t i = 1; i <= rewrites[index] && timing.rewrites.size() < most; ++i) {
      const std::string node = fmt::format("{}_{}", index, i);
      if (disabled == fmt::format("{}.rule@{}", timing.name, node)) continue;
      timing.rewrites.push_back({.rule = "rule", .node = node, .op = "add", .source = "model.py:1"});
      built.is_wrong |= (index == pass && i == rewrite) || others.contains(node);
    }
    return timing;
  }
};

Bisection search(FakeCompiler& compiler, const std::string& whole = "-1") {
  return bisect(whole, [&](const std::string& limit, const std::string& disabled) {
    return compiler(limit, disabled);
  });
}

TEST(Bisect, FindsEachRewriteOfEachPass) {
  const std::vector<size_t> rewrites = {3, 0, 1, 17, 0, 2};
  for (size_t pass = 0; pass < rewrites.size(); ++pass) {
    for (size_t rewrite = 1; rewrite <= rewrites[pass]; ++rewrite) {
      FakeCompiler compiler{rewrites, pass, rewrite, {}};
      const Bisection found = search(compiler);
      ASSERT_EQ(found.outcome, Outcome::kRewrite);
      EXPECT_EQ(found.limit, fmt::format("{}.{}", pass, rewrite));
      EXPECT_EQ(found.pass, fmt::format("pass{}", pass));
      EXPECT_EQ(found.rewrite.node, fmt::format("{}_{}", pass, rewrite));
      EXPECT_EQ(found.disable, fmt::format("pass{0}.rule@{0}_{1}", pass, rewrite));
      EXPECT_TRUE(found.is_right_without);
      EXPECT_EQ(found.builds, compiler.limits.size());
      EXPECT_LE(found.builds, 2 + 3 + 5 + 2);
    }
  }
}

TEST(Bisect, ChecksWhatItFoundByTwoBuilds) {
  FakeCompiler compiler{{2, 2}, 1, 1, {}};
  search(compiler);
  EXPECT_THAT(compiler.limits,
              ::testing::ElementsAre("0", "-1", "1", "1.1", "1.1", "-1 without pass1.rule@1_1"));
}

TEST(Bisect, SaysThatAnotherRewriteIsWrongToo) {
  FakeCompiler compiler{{2, 2}, 0, 2, {"1_1"}};
  const Bisection found = search(compiler);
  EXPECT_EQ(found.limit, "0.2");
  EXPECT_FALSE(found.is_right_without);
}

TEST(Bisect, StaysBelowTheLimitOfTheCaller) {
  for (const char* whole : {"1.3", "2", "1.2"}) {
    FakeCompiler compiler{{2, 4, 2}, 1, 2, {"2_1"}};
    const Bisection found = search(compiler, whole);
    EXPECT_EQ(found.limit, "1.2") << whole;
    EXPECT_TRUE(found.is_right_without) << whole;
  }
  // The rewrite that would take the place of the one that is turned off is beyond the limit too.
  FakeCompiler next{{2, 4, 2}, 1, 2, {"1_4"}};
  EXPECT_TRUE(search(next, "1.3").is_right_without);
  EXPECT_FALSE(search(next, "2").is_right_without);
  FakeCompiler compiler{{2, 4, 2}, 1, 2, {}};
  EXPECT_EQ(search(compiler, "1.1").outcome, Outcome::kRight);
  EXPECT_EQ(search(compiler, "0").outcome, Outcome::kRight);
}

TEST(Bisect, NeedsNoSearchIfNothingIsWrongOrEverything) {
  FakeCompiler compiler{{2, 2}, 7, 1, {}};
  EXPECT_EQ(search(compiler).outcome, Outcome::kRight);
  EXPECT_EQ(bisect("-1", [](const std::string&, const std::string&) { return TriedBuild{true, {}}; }).outcome,
            Outcome::kWrongBeforePasses);
}

// Results that differ from build to build end in one error, wherever the search is.
TEST(Bisect, RejectsContradictions) {
  for (size_t wrong_ones = 1; wrong_ones < 32; ++wrong_ones) {
    FakeCompiler compiler{{0, 3, 0}, 9, 1, {}};
    size_t count = 0;
    const auto judge = [&](const std::string& limit, const std::string& disabled) {
      TriedBuild built = compiler(limit, disabled);
      built.is_wrong = count > 0 && (wrong_ones >> (count - 1) & 1) != 0;
      ++count;
      return built;
    };
    try {
      const Bisection found = bisect("-1", judge);
      const bool is_node = found.rewrite.node.starts_with("1_");
      EXPECT_TRUE(found.outcome == Outcome::kRight || is_node) << wrong_ones;
    } catch (const UserError& error) {
      EXPECT_EQ(error.details().code, "INGOT-U032") << wrong_ones;
    }
  }
}

}  // namespace
}  // namespace ingot::core
