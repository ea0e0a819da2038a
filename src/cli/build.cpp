// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/option_rows.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/report_page.h"
#include "cli/session.h"
#include "cli/system.h"
#include "ingot/build.h"

namespace ingot::cli {
namespace {

EndOnInterrupt end_on_interrupt(bool json) {
  CommandError error("[INGOT-U010] the build was cancelled");
  error.details = {{"code", "INGOT-U010"}, {"message", "the build was cancelled"}};
  const std::string line_end = isatty(STDERR_FILENO) == 1 ? "\n" : "";  // ends the progress line
  return {line_end + "ingot: " + error.what() + "\n", json ? json_of(error) : ""};
}

// Shows progress and handles Ctrl-C: at once, except while a file is being written.
struct Watch {
  EndOnInterrupt interrupts;
  ProgressLine line = {};
};

int32_t report_progress(void* user, const char* phase, size_t done, size_t total, double remaining_seconds) {
  constexpr size_t kMiB = 1 << 20;
  auto& watch = *static_cast<Watch*>(user);
  const bool is_write = std::string_view(phase) == "write";
  if (is_write && done == 0) watch.interrupts.begin_cleanup();
  const size_t unit = is_write ? kMiB : 1;
  watch.line.show(phase, done / unit, (total + unit - 1) / unit, remaining_seconds);
  return was_interrupted() ? 0 : 1;
}

// Nodes that do not simply follow the device, by backend and reason.
void print_backends(const nlohmann::json& backends) {
  std::map<std::string, size_t> counts;
  for (const auto& row : backends)
    ++counts[fmt::format("{} runs {}: {}", row["backend"].get<std::string>(), row["op"].get<std::string>(),
                         row["reason"].get<std::string>())];
  for (const auto& [text, count] : counts) fmt::print("  {} x {}\n", count, text);
}

void print_slow(const nlohmann::json& nodes) {
  for (const auto& slow : nodes) {
    const auto ms = [&](const char* time) { return slow.value(time, 0.0) / 1e6; };
    fmt::print("  slow: {} ({}): {}; predicted {:.3g} ms per run, torch {:.3g} ms{}{}\n",
               slow.value("op", ""), slow.value("node", ""), slow.value("reason", ""), ms("own_ns"),
               ms("peer_ns"), slow.value("source", "").empty() ? "" : " -- ", slow.value("source", ""));
  }
}

void print_precisions(const nlohmann::json& nodes) {
  std::map<std::string, size_t> counts;
  for (const auto& node : nodes) {
    const std::string operands = node.value("operands", ""), weight = node.value("weight", "");
    const std::string reason = node.value("reason", "");
    ++counts[!reason.empty()      ? "f32: " + reason
             : operands == weight ? operands
                                  : fmt::format("{} with weights of {}", operands, weight)];
  }
  for (const auto& [what, count] : counts) fmt::print("  precision: {} in {}\n", count, what);
}

void print_folded(const nlohmann::json& report) {
  if (!report.contains("folded_weights")) return;
  const auto& folded = report["folded_weights"];
  fmt::print(
      "  immutable weights: the build computed {} operators of constants, and {} constants are one number "
      "everywhere\n",
      folded.value("operators", 0), folded.value("numbers", 0));
}

// A page shows what the passes did, so the build must not take the engine from a cache unless it is told to.
void prepare_report(const std::string& path, const std::string& output,
                    std::map<std::string, std::string>& options) {
  check_output_path(path);
  if (to_path(path).lexically_normal() == to_path(output).lexically_normal())
    throw CommandError(fmt::format("--report and --output name the same file, '{}'", path), 2);
  options.try_emplace("reuse_cached_engines", "false");
}

void write_report(const std::string& path, const ingot_engine& engine, const nlohmann::json& build) {
  ingot_text* text = nullptr;
  check(ingot_engine_inspect(&engine, &text));
  write_report_page(path, {{"inspect", nlohmann::json::parse(take_text(text))}, {"build", build}});
}

}  // namespace

void print_tuning(const nlohmann::json& tuning) {
  const auto note = tuning["note"].get<std::string>();
  if (!note.empty()) fmt::print("  {}\n", note);
  if (tuning["timed"] == 0) return;
  fmt::print("  {} kernels have several tactics; {} programs were timed: {:.1f} us became {:.1f} us\n",
             tuning["sites"].get<size_t>(), tuning["timed"].get<size_t>(), tuning["before_us"].get<double>(),
             tuning["after_us"].get<double>());
}

void build(const BuildCommand& command) {
  std::string output = command.output;
  if (output.empty()) output = to_text(to_path(command.model).replace_extension(".ingot"));
  check_output_path(output);
  auto values = command.options;
  if (!command.report.empty()) prepare_report(command.report, output, values);
  const std::vector<ingot_option> options = option_rows(values);
  std::vector<std::pair<std::string, std::string>> entries;
  for (const std::string& text : command.metadata)
    entries.emplace_back(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
  std::vector<ingot_option> metadata;
  for (const auto& [key, value] : entries) metadata.push_back({key.c_str(), value.c_str()});
  ingot_engine* engine = nullptr;
  ingot_text* report = nullptr;
  {
    Watch watch{end_on_interrupt(command.json)};
    const ingot_build_options build_options{.struct_size = sizeof(ingot_build_options),
                                            .options = options.data(),
                                            .option_count = options.size(),
                                            .progress = &report_progress,
                                            .user = &watch,
                                            .metadata = metadata.data(),
                                            .metadata_count = metadata.size(),
                                            .output = output.c_str()};
    ingot_status* status = ingot_build_model(command.model.c_str(), &build_options, &engine, &report);
    if (status != nullptr && was_interrupted()) watch.interrupts.end();
    check(status);
  }
  const EngineHandle built(engine, &ingot_engine_free);
  auto json = nlohmann::json::parse(take_text(report));
  json["output"] = output;
  const std::filesystem::path file = to_path(output);
  // The size of a pipe or device is unknown.
  json["bytes"] = std::filesystem::is_regular_file(file) ? std::filesystem::file_size(file) : 0;
  if (!command.report.empty()) write_report(command.report, *built, json);
  if (command.json) {
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}: {} bytes, {} kernels ({} distinct), built in {:.2f} s\n", output,
               json["bytes"].get<uint64_t>(), json.value("kernels", 0), json.value("distinct_kernels", 0),
               json.value("seconds", 0.0));
    for (const auto& level : json["levels"])
      fmt::print("  {}: {} kernels ({} distinct)\n", level.value("target", ""), level.value("kernels", 0),
                 level.value("distinct_kernels", 0));
    for (const auto& entry : json["disabled_without_node"])
      fmt::print("  disable_passes: the model has no node for \"{}\"\n", entry.get<std::string>());
    print_tuning(json["tuning"]);
    print_folded(json);
    for (const auto& repeats : json["repeats"]) {
      const auto path = repeats["path"].get<std::string>();
      fmt::print("  {}: {} layers, {} distinct\n", path.empty() ? "the model" : path,
                 repeats["layers"].get<size_t>(), repeats["distinct"].get<size_t>());
    }
    print_precisions(json["precisions"]);
    print_backends(json["backends"]);
    print_slow(json["slow"]);
  }
}

}  // namespace ingot::cli
