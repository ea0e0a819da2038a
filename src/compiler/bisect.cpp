// SPDX-License-Identifier: Apache-2.0
#include "compiler/bisect.h"

#include <fmt/core.h>

#include <utility>

#include "support/error.h"

namespace ingot::core {
namespace {

using Timings = std::vector<PassRunner::Timing>;

[[noreturn]] void fail_on_contradiction(const std::string& limit) {
  throw UserError("INGOT-U032",
                  fmt::format("builds with the same passes differ: with bisect_passes={} the result was "
                              "expected to be wrong, and is not",
                              limit),
                  "run the model twice on the same inputs: its results have to be the same, and the "
                  "judgement has to depend on nothing else");
}

Timings optional_runs(Timings passes) {
  std::erase_if(passes, [](const PassRunner::Timing& pass) { return !pass.is_optional; });
  return passes;
}

class Search {
 public:
  explicit Search(const TryBuild& try_build) : try_build_(try_build) {}

  TriedBuild build(const std::string& limit, const std::string& disabled = "") {
    ++builds_;
    return try_build_(limit, disabled);
  }
  // The first of 1..count after which the result is wrong; that of `count` is known to be.
  template <typename LimitOf>
  size_t find_first(size_t count, LimitOf&& limit_of) {
    size_t right = 0, wrong = count;
    while (wrong - right > 1) {
      const size_t middle = right + (wrong - right) / 2;
      (build(limit_of(middle)).is_wrong ? wrong : right) = middle;
    }
    return wrong;
  }
  size_t builds() const { return builds_; }

 private:
  const TryBuild& try_build_;
  size_t builds_ = 0;
};

std::string entry_of(const std::string& pass, const Rewrite& rewrite) {
  return fmt::format("{}{}{}@{}", pass, rewrite.rule.empty() ? "" : ".", rewrite.rule, rewrite.node);
}

// Where `whole` counts rewrites of that run: one fewer, as the one that is turned off made room for another.
std::string limit_without_one(const std::string& whole, size_t run, size_t rewrites) {
  return whole.starts_with(fmt::format("{}.", run)) ? fmt::format("{}.{}", run, rewrites - 1) : whole;
}

}  // namespace

Bisection bisect(const std::string& whole, const TryBuild& try_build) {
  using Outcome = Bisection::Outcome;
  Search search(try_build);
  if (search.build("0").is_wrong) return {.outcome = Outcome::kWrongBeforePasses, .builds = search.builds()};
  TriedBuild last = search.build(whole);
  if (!last.is_wrong) return {.outcome = Outcome::kRight, .builds = search.builds()};
  const Timings runs = optional_runs(std::move(last.passes));
  if (runs.empty()) fail_on_contradiction(whole);
  const size_t run =
      search.find_first(runs.size(), [](size_t count) { return fmt::format("{}", count); }) - 1;
  // A run without rewrites changes nothing.
  if (runs[run].rewrites.empty()) fail_on_contradiction(fmt::format("{}", run + 1));
  const auto limit_of = [&](size_t count) { return fmt::format("{}.{}", run, count); };
  const std::string limit = limit_of(search.find_first(runs[run].rewrites.size(), limit_of));
  TriedBuild found = search.build(limit);
  const Timings stopped = optional_runs(std::move(found.passes));
  if (!found.is_wrong || stopped.size() <= run || stopped[run].rewrites.empty()) fail_on_contradiction(limit);
  const Rewrite& rewrite = stopped[run].rewrites.back();
  const std::string disable = entry_of(runs[run].name, rewrite);
  const std::string others = limit_without_one(whole, run, runs[run].rewrites.size());
  const bool is_right_without = !search.build(others, disable).is_wrong;
  return {.outcome = Outcome::kRewrite,
          .pass = runs[run].name,
          .rewrite = rewrite,
          .limit = limit,
          .disable = disable,
          .is_right_without = is_right_without,
          .builds = search.builds()};
}

}  // namespace ingot::core
