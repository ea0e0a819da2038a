// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

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

// The last run as Chrome trace events, for chrome://tracing and Perfetto.
void write_trace(const nlohmann::json& json, const std::string& path) {
  auto events = nlohmann::json::array();
  for (const nlohmann::json& step : json["steps"]) {
    events.push_back(
        {{"name", step["name"]},
         {"cat", step["kind"]},
         {"ph", "X"},
         {"pid", 1},
         {"tid", 1},
         {"ts", step["start_ns"].get<double>() / 1000},
         {"dur", step["last_ns"].get<double>() / 1000},
         {"args",
          {{"operators", step["operators"]}, {"operations", step["operations"]}, {"bytes", step["bytes"]}}}});
  }
  OutputFile file(path);
  file.write(nlohmann::json{{"traceEvents", events}, {"displayTimeUnit", "ns"}}.dump(1));
  file.finish();
}

}  // namespace

void profile(const ProfileCommand& command) {
  for (const std::string& path : {command.trace, command.bench.report}) {
    if (!path.empty()) check_output_path(path);
  }
  Session session(command.bench.run);
  catch_interrupts();
  for (int i = 0; i < command.bench.warmup; ++i) session.run();
  const nlohmann::json json = reported_times(session, command.bench);
  if (!command.trace.empty()) write_trace(json, command.trace);
  if (command.bench.run.json) {
    fmt::print("{}\n", json.dump(2));
  } else {
    print_shapes(session);
    print_step_times(json, command.bench.top);
  }
}

}  // namespace ingot::cli
