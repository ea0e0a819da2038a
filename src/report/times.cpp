// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/core.h>

#include "report/page_data.h"

namespace ingot::core::report {
namespace {

constexpr size_t kMostSteps = 50;
constexpr double kLongestBar = 12;  // rem

std::string first_line_of(const Json& step) {
  for (const Json& node : array_of(step, "operators")) {
    const std::string line = text_of(node, "source");
    if (!line.empty()) return short_line(line);
  }
  return "";
}

Data time_data(const Json& step, size_t number, double longest) {
  const double share = number_of(step, "share");
  const bool has_work = number_of(step, "operations") + number_of(step, "bytes") > 0;
  Data data;
  data.set("us", fmt::format("{:.1f}", number_of(step, "median_ns") / 1000));
  data.set("share", fmt::format("{:.1f}", 100 * share));
  data.set("width", fmt::format("{:.2f}", longest > 0 ? std::max(0.0, share / longest) * kLongestBar : 0.0));
  data.set("roof", has_work ? fmt::format("{:.0f} %", 100 * number_of(step, "roof_share")) : "");
  data.set("number", std::to_string(number));
  data.set("name", text_of(step, "name"));
  data.set("source", first_line_of(step));
  return data;
}

std::string profile_text(const Json& profile) {
  if (profile.empty())
    return "No profile was taken: pass one of ingot.profile, or use ingot profile --report, to see the time "
           "of "
           "each step.";
  return fmt::format(
      "Profile: median {:.4f} ms in {:.0f} runs on {:.0f} threads; the table has the {} slowest "
      "steps at most. Roof: the minimum time for a step's work on this machine, divided by its "
      "measured time.",
      number_of(profile, "median_ns") / 1e6, number_of(profile, "runs"), number_of(profile, "threads"),
      kMostSteps);
}

}  // namespace

void add_times(Data& engine, const Json& build, const Json& profile) {
  Data phases = empty_list();
  for (const Json& phase : array_of(build, "phases")) {
    Data row;
    row.set("name", text_of(phase, "name"));
    row.set("seconds", fmt::format("{:.3f}", number_of(phase, "seconds")));
    phases << row;
  }
  const Json& steps = array_of(profile, "steps");
  std::vector<size_t> order(steps.size());
  double longest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    longest = std::max(longest, number_of(steps[i], "share"));
  }
  const auto time = [&](size_t i) { return number_of(steps[i], "median_ns"); };
  std::ranges::stable_sort(order, std::greater(), time);
  order.resize(std::min(order.size(), kMostSteps));
  Data times = empty_list();
  for (const size_t i : order) times << time_data(steps[i], i, longest);
  engine.set("has_phases", phases.is_non_empty_list());
  engine.set("phases", phases);
  engine.set("profile", profile_text(profile));
  engine.set("has_times", !steps.empty());
  engine.set("times", times);
}

}  // namespace ingot::core::report
