// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/array_summary.h"
#include "cli/commands.h"
#include "cli/session.h"

namespace ingot::cli {

namespace {

nlohmann::json describe(const Array& output) {
  nlohmann::json json = {{"name", output.name}, {"dtype", dtype_name(output.dtype)}, {"shape", output.shape}};
  if (const std::optional<Summary> summary = summarize(output)) {
    json["min"] = summary->min;
    json["max"] = summary->max;
    json["mean"] = summary->mean;
  }
  return json;
}

void print(const Array& output) {
  fmt::print("{}: {}[{}]", output.name, dtype_name(output.dtype), fmt::join(output.shape, ","));
  if (const std::optional<Summary> summary = summarize(output))
    fmt::print("  min {:.6g}  max {:.6g}  mean {:.6g}", summary->min, summary->max, summary->mean);
  fmt::print("\n");
}

}  // namespace

void run(const RunCommand& command) {
  Session session(command);
  const std::vector<Array>& outputs = session.run();
  if (!command.output.empty()) write_arrays(command.output, outputs);
  if (command.json) {
    nlohmann::json json = nlohmann::json::array();
    for (const Array& output : outputs) json.push_back(describe(output));
    fmt::print("{}\n", nlohmann::json{{"outputs", json}}.dump(2));
  } else {
    for (const Array& output : outputs) print(output);
  }
}

}  // namespace ingot::cli
