// SPDX-License-Identifier: Apache-2.0
#include "cli/reported_times.h"

#include "cli/report_page.h"
#include "cli/step_times.h"

namespace ingot::cli {

nlohmann::json reported_times(Session& session, const BenchCommand& command) {
  nlohmann::json times = measure_steps(session, command.seconds);
  times["engine"] = command.run.engine;
  if (!command.report.empty())
    write_report_page(command.report,
                      {{"inspect", nlohmann::json::parse(session.inspect())}, {"profile", times}});
  return times;
}

}  // namespace ingot::cli
