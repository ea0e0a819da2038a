// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/array_summary.h"
#include "cli/commands.h"
#include "cli/session.h"

namespace ingot::cli {

void run(const RunCommand& command) {
  Session session(command);
  const std::vector<Array>& outputs = session.run();
  if (!command.output.empty()) write_arrays(command.output, outputs);
  nlohmann::json json = nlohmann::json::array();
  for (const Array& output : outputs) {
    const Summary summary = summarize(output);
    json.push_back({{"name", output.name},
                    {"dtype", dtype_name(output.dtype)},
                    {"shape", output.shape},
                    {"min", summary.min},
                    {"max", summary.max},
                    {"mean", summary.mean}});
    if (!command.json) {
      fmt::print("{}: {} {}  min {:.6g}  max {:.6g}  mean {:.6g}\n", output.name, dtype_name(output.dtype),
                 nlohmann::json(output.shape).dump(), summary.min, summary.max, summary.mean);
    }
  }
  if (command.json) fmt::print("{}\n", nlohmann::json{{"outputs", json}}.dump(2));
}

}  // namespace ingot::cli
