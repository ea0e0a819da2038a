// SPDX-License-Identifier: Apache-2.0
#include "cli/timing_options.h"

#include <cmath>

#include "cli/shared_options.h"

namespace ingot::cli {
namespace {

constexpr double kDay = 86400;  // seconds; what groups of ranks wait at most

void add_timing_options(CLI::App& app, BenchCommand& command) {
  app.add_option("--seconds", command.seconds, "how long to measure")
      ->type_name("seconds")
      ->check(&check_seconds)
      ->capture_default_str();
  app.add_option("--warmup", command.warmup, "runs before the measurement")
      ->type_name("number")
      ->check(CLI::Range(0, 1'000'000).description(""))
      ->capture_default_str();
}

void add_times_report(CLI::App& app, BenchCommand& command) {
  app.add_option("--report", command.report,
                 "write a page about the engine, with the time of each step: report.html")
      ->type_name("FILE");
}

}  // namespace

std::string check_seconds(const std::string& text) {
  double seconds = 0;
  const bool is_number = CLI::detail::lexical_cast(text, seconds) && std::isfinite(seconds) && seconds > 0;
  if (is_number && seconds > kDay) return "'" + text + "' is more than a day";
  return is_number ? "" : "'" + text + "' is not a time in seconds";
}

void add_bench(CLI::App& app, BenchCommand& command) {
  CLI::App* bench = app.add_subcommand("bench", "Time an engine");
  add_run_options(*bench, command.run);
  add_timing_options(*bench, command);
  bench->add_flag("--profile", command.profile, "time each step too, in separate runs");
  add_top(*bench, command.top, "slowest steps to print with --profile");
  add_times_report(*bench, command);
  bench->callback([&command] { ingot::cli::bench(command); });
}

void add_profile(CLI::App& app, ProfileCommand& command) {
  CLI::App* profile = app.add_subcommand("profile", "Time each step of an engine");
  add_run_options(*profile, command.bench.run);
  add_timing_options(*profile, command.bench);
  add_top(*profile, command.bench.top, "slowest steps to print");
  profile
      ->add_option("--trace", command.trace,
                   "write the last run for chrome://tracing or Perfetto: trace.json")
      ->type_name("FILE");
  add_times_report(*profile, command.bench);
  profile->callback([&command] { ingot::cli::profile(command); });
}

}  // namespace ingot::cli
