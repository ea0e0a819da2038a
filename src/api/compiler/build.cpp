// SPDX-License-Identifier: Apache-2.0
#include "api/compiler/build.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <fmt/core.h>

#include "api/compiler/backends.h"
#include "api/compiler/cache_use.h"
#include "api/compiler/metadata.h"
#include "api/compiler/report_json.h"
#include "api/runtime/checks.h"
#include "api/runtime/groups.h"
#include "api/runtime/handles.h"
#include "api/runtime/host_access.h"
#include "api/runtime/session.h"
#include "api/runtime/weights_file.h"
#include "compiler/compile.h"
#include "compiler/declare_shards.h"
#include "compiler/join_levels.h"
#include "compiler/profile.h"
#include "compiler/target_pipeline.h"
#include "engine/levels.h"
#include "partition/partition.h"
#include "runtime/prepare.h"
#include "support/error.h"

namespace ingot::core::api {
namespace {

constexpr size_t kFirstBuildOptions = offsetof(ingot_build_options, user) + sizeof(void*);

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

void check_shards(const CompileOptions& options) {
  if (options.immutable_weights && !options.shards.empty())
    throw UserError("INGOT-U002", "with immutable_weights no weight can be a part of a tensor (shards)",
                    "leave out one of the two options");
}

void check_weights_file(const CompileOptions& options) {
  if (options.weights_files.empty()) return;
  if (options.immutable_weights)
    throw UserError("INGOT-U002", "with immutable_weights no weight can come from weights_file",
                    "leave out one of the two options");
  for (const std::string& file : options.weights_files) {
    if (!std::filesystem::is_regular_file(file))
      throw UserError("INGOT-U335", "there is no file '" + file + "', which weights_file names",
                      "write it first: safetensors.torch.save_file(model.state_dict(), path)");
  }
}

// The same of a program that is not imported yet.
std::vector<TensorArgument> tensor_arguments(const aten::Program& program) {
  std::vector<TensorArgument> arguments;
  for (const aten::Input& input : program.graph.inputs) {
    const aten::Value& value = program.graph.values[input.value];
    const bool is_tensor = value.kind == aten::ValueKind::kTensor && !input.literal;
    if (input.kind == aten::InputKind::kUser && is_tensor)
      arguments.push_back({input.name, {value.tensor.dtype, value.tensor.shape, {}}});
  }
  return arguments;
}

ProgressCallback read_progress(const ingot_build_options& options) {
  if (options.progress == nullptr) return {};
  return [call = options.progress, user = options.user](const Progress& progress) {
    const std::string phase(progress.phase);
    return call(user, phase.c_str(), progress.done, progress.total, progress.remaining_seconds) != 0;
  };
}

QuietCallback read_quiet(const ingot_build_options& options) {
  if (options.quiet == nullptr) return {};
  return [call = options.quiet, user = options.user](bool waits) { return call(user, waits ? 1 : 0); };
}

std::function<void(const std::string&)> info_log() {
  if (!host().log().wants(LogLevel::kInfo)) return {};
  return [](const std::string& line) { host().log().write(LogLevel::kInfo, "cache: " + line); };
}

// One build, from the options to the file: the phases around `compile`, and the clock of all.
class Build {
 public:
  explicit Build(const ingot_build_options* given)
      : given_(copy_of(given)),
        options_(checked_options(given_)),
        metadata_(read_user_metadata(given_)),
        phases_("read", read_progress(given_)) {
    phases_.report(0, 1);
  }

  // The engine, with its weights prepared, unless it is for another processor.
  std::unique_ptr<ingot_engine> run(const aten::Program& program, const ImportModel& import) {
    const CompileHooks hooks{.phases = &phases_,
                             .dump = {},
                             .cache = &cache_of(given_.session),
                             .cache_use = cache_use(options_.cache, given_.store, info_log()),
                             .log = info_log(),
                             .host = &host(),
                             .gpu = options_.gpu,
                             .quiet = read_quiet(given_)};
    std::vector<std::string> devices = options_.levels;
    if (devices.empty()) devices.push_back(options_.target.device);
    std::vector<std::shared_ptr<EngineData>> levels;
    for (const std::string& device : devices) levels.push_back(run_level(device, program, import, hooks));
    const bool is_one = levels.size() == 1;
    return finished(is_one ? levels[0] : join_levels(std::move(levels)));
  }

  // The engine of one processor, its weights not yet prepared.
  std::shared_ptr<EngineData> run_level(const std::string& device, const aten::Program& program,
                                        const ImportModel& import, const CompileHooks& hooks) {
    CompileOptions options = options_;
    options.target.device = device;
    BuildReport report;
    const auto imported = [&] { return import(options.immutable_weights); };
    std::shared_ptr<EngineData> data =
        import ? compile_model(program, imported, options, backends(), hooks, &report)
               : compile(program, options, backends(), hooks, &report);
    reports_.push_back({data->target, std::move(report)});
    data->metadata = metadata_;
    declare_shards(*data, options_.shards);
    require_no_parts(*data);
    return data;
  }

  std::unique_ptr<ingot_engine> finished(const std::shared_ptr<EngineData>& data) {
    if (options_.strip_weights || !options_.weights_files.empty()) return stripped(*data);
    change_levels(*data, [](EngineData& level) { level.weights_ranks = own_ranks(level); });
    // For another processor: weights are prepared when the engine is loaded there.
    if (!can_run(*data, host(), options_.gpu)) return std::make_unique<ingot_engine>(data);
    phases_.begin("prepare weights");
    // Results of init on a device stay there, and those of one level are not those of others.
    if (!options_.keep_original_weights && data->devices.empty() && data->other_levels.empty())
      prepare_weights(*data, host(), options_.gpu);
    return std::make_unique<ingot_engine>(Engine::create(data, host(), options_.gpu));
  }

  std::unique_ptr<ingot_engine> stripped(const EngineData& built) const {
    const auto data = std::make_shared<EngineData>(without_weights(built));
    for (size_t i = 0; i < built.sources.size(); ++i) {
      if (!built.sources[i].is_saved) data->sources[i].data = built.sources[i].data;  // no file has them
    }
    if (!options_.keep_original_weights && data->other_levels.empty())
      data->weights_form = WeightsForm::kPrepared;
    if (!options_.weights_files.empty()) api::leave_weights_to(options_.weights_files, built, *data);
    share_sources(*data);
    if (!can_run(*data, host(), options_.gpu)) return std::make_unique<ingot_engine>(data);
    auto handle = std::make_unique<ingot_engine>(Engine::create(data, host(), options_.gpu));
    if (options_.weights_files.empty()) return handle;
    const ShardRanks ranks = find_ranks(*data, nullptr);
    // An engine for all ranks may be built by none of them: it has its weights when it is loaded.
    const bool is_of_a_rank = std::ranges::all_of(data->sources, [&](const SourceWeight& source) {
      return part_number(source.shards, ranks) != kNoPart;
    });
    if (is_of_a_rank) api::take_file_weights(*handle, {}, FileMemory::kMap, ranks);
    return handle;
  }

  // The ranks whose parts of different sizes the engine has the values of: others cannot run with them.
  static ShardRanks own_ranks(const EngineData& data) {
    const auto is_uneven = [](const SourceWeight& source) { return has_uneven_parts(source.shards); };
    if (std::ranges::none_of(data.sources, is_uneven)) return {};
    const ShardRanks ranks = find_ranks(data, nullptr);
    for (const SourceWeight& source : data.sources)
      if (part_number(source.shards, ranks) == kNoPart)
        throw UserError("INGOT-U357",
                        "the engine has parts of weights, and this process does not say which rank it is",
                        "join a group first, or set INGOT_RANK");
    return ranks_of_parts(data, ranks);
  }

  // A file with one rank's parts in it would be taken for one of all ranks.
  void require_no_parts(const EngineData& data) const {
    const auto is_part = [](const SourceWeight& source) {
      return !source.shards.empty() && !has_uneven_parts(source.shards);
    };
    if (std::ranges::none_of(data.sources, is_part) || options_.strip_weights ||
        !options_.weights_files.empty())
      return;
    throw UserError("INGOT-U356", "an engine with `shards` takes its weights when it is loaded",
                    "build it with strip_engine_weights (--strip-engine-weights), or with weights_file "
                    "(--weights-file), and give each rank the whole checkpoint");
  }

  void write_output(const ingot_engine& engine) {
    if (given_.output == nullptr) return;
    phases_.begin("write");
    save(engine, given_.output, [&](uint64_t done, uint64_t total) { phases_.report(done, total); });
  }

  // The first level's.
  const BuildReport& build_report() const { return reports_.front().report; }
  std::vector<PassRunner::Timing> passes() const { return build_report().passes; }

  std::string report() const { return report_json(reports_, phases_.phases()); }

 private:
  const ingot_build_options given_;
  CompileOptions options_;
  std::map<std::string, std::string> metadata_;
  Phases phases_;
  std::vector<LevelReport> reports_;  // one per level
};

// The program is one engine. Python asks for those that it divides, when all are built.
void require_used_choices(const BuildReport& report) {
  if (report.unused_backend_of.empty()) return;
  throw UserError("INGOT-U002",
                  fmt::format("option \"backend_of\" names \"{}\", but no node is called so, and no operator",
                              report.unused_backend_of[0]),
                  "the report has the names of nodes; patterns may have * and ?");
}

std::unique_ptr<ingot_engine> make_engine(Build& build, const Model& model) {
  std::unique_ptr<ingot_engine> made = build.run(model.program, model.import);
  require_used_choices(build.build_report());
  made->model.push_back(model.file);
  require_unchanged_model(*made);
  return made;
}

void finish(Build& build, std::unique_ptr<ingot_engine> made, ingot_engine** engine, ingot_text** report) {
  build.write_output(*made);
  if (report != nullptr) *report = make_text(build.report());
  *engine = made.release();
}

// In the backends' own words. What runs on the host of a device is compiled for `cpu`.
void resolve_devices(Target& target) {
  const Backend& backend = find_backend(backends(), target.backend);
  const bool is_device = backend.place().kind == Place::Kind::kDevice;
  if (is_device && target.device == target.host_device) target.device.clear();
  target.device = backend.device(target.device);
  const Backend* host = host_backend(backends());
  target.host_device = is_device && host != nullptr ? host->device(target.host_device) : "";
}

}  // namespace

CompileOptions checked_options(const ingot_build_options& options) {
  std::map<std::string, std::string> rows = read_rows(options);
  add_variables(rows);
  CompileOptions parsed = parse_options(rows);
  resolve_devices(parsed.target);
  check_server(parsed.cache);
  check_shards(parsed);
  check_weights_file(parsed);
  const EngineBackends chosen(backends(), parsed.target);
  const PassRunner checks_names(pipeline_for(chosen), parsed.passes);
  Graph none;
  set_named_sides(none, chosen);
  return parsed;
}

ingot_build_options copy_of(const ingot_build_options* given) {
  if (given == nullptr) return {};
  return read_struct(given, kFirstBuildOptions, "ingot_build_options");
}

void check_options(const ingot_build_options* options, const aten::Program* program) {
  const ingot_build_options given = copy_of(options);
  const CompileOptions parsed = checked_options(given);
  read_user_metadata(given);
  if (program == nullptr) return;
  SymbolTable symbols = program->graph.symbols;
  apply_profiles(symbols, tensor_arguments(*program), parsed.profiles);
}

std::string slow_nodes(const aten::Program& program, const ingot_build_options* options) {
  return slow_json(find_slow(program, checked_options(copy_of(options)), backends()));
}

void build(const std::function<Model()>& read, const ingot_build_options* options, ingot_engine** engine,
           ingot_text** report) {
  require(engine, "engine");
  Build build(options);
  const Model model = read();
  finish(build, make_engine(build, model), engine, report);
}

std::unique_ptr<ingot_engine> build(const Model& model, const ingot_build_options* options,
                                    std::vector<PassRunner::Timing>& passes) {
  Build build(options);
  std::unique_ptr<ingot_engine> made = make_engine(build, model);
  passes = build.passes();
  return made;
}

void build(const aten::Program& program, const ingot_build_options* options, ingot_engine** engine,
           ingot_text** report) {
  require(engine, "engine");
  Build build(options);
  finish(build, build.run(program, {}), engine, report);
}

}  // namespace ingot::core::api
