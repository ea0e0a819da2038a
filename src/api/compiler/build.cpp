// SPDX-License-Identifier: Apache-2.0
#include "api/compiler/build.h"

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "api/compiler/backends.h"
#include "api/runtime/checks.h"
#include "api/runtime/handles.h"
#include "api/runtime/host_access.h"
#include "compiler/compile.h"
#include "runtime/prepare.h"
#include "support/error.h"
#include "support/json_writer.h"

namespace ingot::core::api {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kFirstBuildOptions = offsetof(ingot_build_options, user) + sizeof(void*);

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::map<std::string, std::string> read_rows(const ingot_build_options& options) {
  std::map<std::string, std::string> rows;
  if (options.option_count > 0) require(options.options, "options");
  for (size_t i = 0; i < options.option_count; ++i) {
    require(options.options[i].name, "option name");
    require(options.options[i].value, "option value");
    rows.insert_or_assign(options.options[i].name, options.options[i].value);
  }
  return rows;
}

ProgressCallback read_progress(const ingot_build_options& options) {
  if (options.progress == nullptr) return {};
  return [call = options.progress, user = options.user](const Progress& progress) {
    const std::string phase(progress.phase);
    return call(user, phase.c_str(), progress.done, progress.total, progress.remaining_seconds) != 0;
  };
}

// One build: its options, its clock, and what it reports.
class Build {
 public:
  explicit Build(const ingot_build_options* given) : start_(Clock::now()) {
    ingot_build_options options{};
    if (given != nullptr) options = read_struct(given, kFirstBuildOptions, "ingot_build_options");
    options_ = parse_options(read_rows(options));
    hooks_.progress = read_progress(options);
  }

  template <typename Function>
  auto phase(std::string_view name, Function&& function) {
    if (hooks_.progress && !hooks_.progress({name, 0, 1, -1}))
      throw UserError("INGOT-U010", "the build was cancelled");
    const Clock::time_point start = Clock::now();
    auto result = function();
    report_.phases.push_back({std::string(name), seconds_since(start)});
    return result;
  }

  std::unique_ptr<ingot_engine> run(const aten::Program& program) {
    const std::shared_ptr<EngineData> data = compile(program, options_, backends(), hooks_, &report_);
    target_ = data->target;
    // For another processor: its weights are prepared where it runs.
    if (!host_cpu_features().covers(data->needs)) return std::make_unique<ingot_engine>(data);
    return phase("prepare weights", [&] {
      if (!options_.keep_original_weights) prepare_weights(*data, host());
      return std::make_unique<ingot_engine>(Engine::create(data, host()));
    });
  }

  std::string report() const {
    JsonWriter json;
    json.begin_object();
    json.field("target", target_);
    json.field("seconds", seconds_since(start_));
    json.key("phases");
    json.begin_array();
    for (const BuildReport::Phase& phase : report_.phases) {
      json.begin_object();
      json.field("name", phase.name);
      json.field("seconds", phase.seconds);
      json.end_object();
    }
    json.end_array();
    json.field("kernels", report_.kernels);
    json.field("distinct_kernels", report_.distinct_kernels);
    json.field("arena_bytes", report_.arena_bytes);
    json.field("arena_lower_bound", report_.arena_lower_bound);
    json.end_object();
    return std::move(json).text();
  }

 private:
  Clock::time_point start_;
  CompileOptions options_;
  CompileHooks hooks_;
  BuildReport report_;
  std::string target_;
};

void finish(Build& build, const aten::Program& program, ingot_engine** engine, ingot_text** report) {
  std::unique_ptr<ingot_engine> made = build.run(program);
  if (report != nullptr) *report = make_text(build.report());
  *engine = made.release();
}

}  // namespace

void build(const std::function<aten::Program()>& read, const ingot_build_options* options,
           ingot_engine** engine, ingot_text** report) {
  require(engine, "engine");
  Build build(options);
  const aten::Program program = build.phase("read", read);
  finish(build, program, engine, report);
}

void build(const aten::Program& program, const ingot_build_options* options, ingot_engine** engine,
           ingot_text** report) {
  require(engine, "engine");
  Build build(options);
  finish(build, program, engine, report);
}

}  // namespace ingot::core::api
