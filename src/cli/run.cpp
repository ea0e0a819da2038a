// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/array_summary.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/system.h"

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

void replace_rank(std::string& text, const std::string& rank) {
  constexpr std::string_view kPlace = "{rank}";
  for (size_t at = text.find(kPlace); at != std::string::npos; at = text.find(kPlace, at))
    text.replace(at, kPlace.size(), rank);
}

void set_rank(RunCommand& command, int rank) {
  const std::string text = std::to_string(rank);
  for (std::string* name : {&command.engine, &command.output, &command.shapes}) replace_rank(*name, text);
  for (auto* names : {&command.inputs, &command.weights})
    for (std::string& name : *names) replace_rank(name, text);
}

void require_output_per_rank(const RunCommand& command) {
  if (command.ranks < 2 || command.output.empty() || command.output.find("{rank}") != std::string::npos)
    return;
  throw CommandError(
      fmt::format("'{}' would be written by {} ranks: put {{rank}} into its name, such as out{{rank}}.npz",
                  command.output, command.ranks),
      2);
}

void print(const Array& output) {
  fmt::print("{}: {}[{}]", output.name, dtype_name(output.dtype), fmt::join(output.shape, ","));
  if (const std::optional<Summary> summary = summarize(output))
    fmt::print("  min {:.6g}  max {:.6g}  mean {:.6g}", summary->min, summary->max, summary->mean);
  fmt::print("\n");
}

}  // namespace

void run(const RunCommand& given) {
  RunCommand command = given;
  require_output_per_rank(given);
  if (given.ranks > 0) {
    const std::optional<int> rank = start_ranks(given.ranks, given.deadline);
    if (!rank) return;  // they have done it
    set_rank(command, *rank);
    const int gpus = ingot_gpu_count();
    if (gpus > 0 && command.gpu < 0) command.gpu = *rank % gpus;
  }
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
