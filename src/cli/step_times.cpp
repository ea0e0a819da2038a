// SPDX-License-Identifier: Apache-2.0
#include "cli/step_times.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "cli/interrupt.h"
#include "cli/progress.h"

namespace ingot::cli {
namespace {

using Json = nlohmann::json;

// "1.25 M": three digits and a prefix.
std::string scaled(double value) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < std::size(kPrefixes)) value /= 1000, ++prefix;
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, kPrefixes[prefix]);
}

// The lines of the model that a step computes, without duplicates, only the first spelled out.
std::string source_of(const Json& step) {
  std::vector<std::string> lines;
  for (const Json& node : step["operators"]) {
    const auto line = node["source"].get<std::string>();
    if (!line.empty() && std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
  }
  if (lines.empty()) return "";
  return lines.size() == 1 ? lines[0] : fmt::format("{} and {} more", lines[0], lines.size() - 1);
}

void print_step(const Json& step) {
  const double work = step["operations"].get<double>(), bytes = step["bytes"].get<double>();
  const std::string roof =
      work + bytes == 0 ? "" : fmt::format("{:.0f} %", 100 * step["roof_share"].get<double>());
  fmt::print("{:>10.1f} {:>7.1f} {:>6} {:>9} {:>8}B  {}\n", step["median_ns"].get<double>() / 1000,
             100 * step["share"].get<double>(), roof, scaled(work), scaled(bytes),
             step["name"].get<std::string>());
  if (const std::string source = source_of(step); !source.empty()) fmt::print("{:>47}{}\n", "", source);
}

// What a GPU did in the time of its kernels, beside what it could have done.
void print_device(const Json& device) {
  const auto number = [&](const char* name) { return device[name].get<double>(); };
  fmt::print(
      "{}: {} kernels in {:.1f} us; {:.1f} % of what its memory moves meanwhile ({}B/s), {:.1f} % of what "
      "its cores "
      "compute (f16: {}FLOP/s)\n",
      device["name"].get<std::string>(), device["kernels"].get<int64_t>(), number("kernels_ns") / 1000,
      100 * number("memory_share"), scaled(number("bytes_per_second")), 100 * number("compute_share"),
      scaled(number("half_operations_per_second")));
}

}  // namespace

Json measure_steps(Session& session, double seconds) {
  using Clock = std::chrono::steady_clock;
  session.set_profiling();
  const auto start = Clock::now();
  ProgressLine line;
  double elapsed = 0;
  for (size_t runs = 1; elapsed < seconds && !was_interrupted(); ++runs) {
    session.run();
    elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    line.show("profile", runs, runs, seconds - elapsed);
  }
  return Json::parse(session.profile());
}

void print_shapes(const Session& session) {
  const std::string shapes = session.chosen_shapes();
  if (!shapes.empty()) fmt::print("shapes: {}\n", shapes);
}

void print_step_times(const Json& json, size_t top) {
  std::vector<Json> steps(json["steps"].begin(), json["steps"].end());
  std::ranges::stable_sort(steps, std::greater(),
                           [](const Json& step) { return step["median_ns"].get<int64_t>(); });
  fmt::print("{} steps, {} runs, {} threads: median {:.4f} ms; f32 roof {}FLOP/s\n", steps.size(),
             json["runs"].get<size_t>(), json["threads"].get<int>(), json["median_ns"].get<double>() / 1e6,
             scaled(json["roof"]["operations_per_second"].get<double>()));
  if (json.contains("device")) print_device(json["device"]);
  fmt::print("{:>10} {:>7} {:>6} {:>9} {:>9}  {}\n", "us", "%", "roof", "FLOP", "traffic", "step");
  for (size_t i = 0; i < std::min(top, steps.size()); ++i) print_step(steps[i]);
  double rest = 0;
  for (size_t i = top; i < steps.size(); ++i) rest += 100 * steps[i]["share"].get<double>();
  if (top < steps.size())
    fmt::print("{:>10} {:>7.1f} the other {} steps; use --top to print more\n", "", rest, steps.size() - top);
}

}  // namespace ingot::cli
