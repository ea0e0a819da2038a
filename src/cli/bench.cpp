// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/reported_times.h"
#include "cli/session.h"
#include "cli/step_times.h"

namespace ingot::cli {
namespace {

double percentile(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

void bench(const BenchCommand& command) {
  using Clock = std::chrono::steady_clock;
  if (!command.report.empty()) check_output_path(command.report);
  Session session(command.run);
  catch_interrupts();
  for (int i = 0; i < command.warmup; ++i) session.run();
  std::vector<double> times;  // milliseconds
  const auto start = Clock::now();
  double elapsed = 0;
  {
    ProgressLine line;
    do {
      const auto before = Clock::now();
      session.run();
      const auto after = Clock::now();
      times.push_back(std::chrono::duration<double, std::milli>(after - before).count());
      elapsed = std::chrono::duration<double>(after - start).count();
      line.show("bench", times.size(), times.size(), command.seconds - elapsed);
    } while (elapsed < command.seconds && !was_interrupted());
  }
  std::ranges::sort(times);
  nlohmann::json json = {{"engine", command.run.engine},      {"runs", times.size()},
                         {"shapes", session.chosen_shapes()}, {"threads", ingot_get_threads()},
                         {"min_ms", times.front()},           {"median_ms", percentile(times, 0.5)},
                         {"p90_ms", percentile(times, 0.9)},  {"p99_ms", percentile(times, 0.99)}};
  const bool profiles = command.profile || session.is_on_device();
  if (profiles || !command.report.empty()) {
    nlohmann::json times = reported_times(session, command);
    if (profiles) json["profile"] = std::move(times);
  }
  if (command.run.json) {
    fmt::print("{}\n", json.dump(2));
  } else {
    print_shapes(session);
    fmt::print("{}: {} runs, {} threads: min {:.4f} ms, median {:.4f} ms, p90 {:.4f} ms, p99 {:.4f} ms\n",
               command.run.engine, times.size(), ingot_get_threads(), times.front(), percentile(times, 0.5),
               percentile(times, 0.9), percentile(times, 0.99));
    if (profiles) print_step_times(json["profile"], command.top);
  }
}

}  // namespace ingot::cli
