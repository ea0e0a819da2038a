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
#include "api/runtime/checks.h"
#include "api/runtime/groups.h"
#include "api/runtime/handles.h"
#include "api/runtime/host_access.h"
#include "api/runtime/session.h"
#include "api/runtime/weights_file.h"
#include "compiler/compile.h"
#include "compiler/declare_shards.h"
#include "compiler/profile.h"
#include "compiler/target_pipeline.h"
#include "partition/partition.h"
#include "runtime/prepare.h"
#include "support/error.h"
#include "support/json_writer.h"

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

void write_fields(JsonWriter& json, const SlowNode& slow) {
  json.field("node", slow.node);
  json.field("op", slow.op);
  json.field("source", slow.source);
  json.field("reason", slow.reason);
  json.field("own_ns", slow.own_ns);
  json.field("peer_ns", slow.peer_ns);
}

void write_fields(JsonWriter& json, const ChosenBackend& chosen) {
  json.field("node", chosen.node);
  json.field("op", chosen.op);
  json.field("source", chosen.source);
  json.field("backend", chosen.backend);
  json.field("reason", chosen.reason);
}

void write_fields(JsonWriter& json, const Phases::Phase& phase) {
  json.field("name", phase.name);
  json.field("seconds", phase.seconds);
}

void write_fields(JsonWriter& json, const Rewrite& rewrite) {
  json.field("rule", rewrite.rule);
  json.field("node", rewrite.node);
  json.field("op", rewrite.op);
  json.field("source", rewrite.source);
}

template <typename Range>
void write_objects(JsonWriter& json, const Range& items);

void write_fields(JsonWriter& json, const PassRunner::Timing& pass) {
  json.field("name", pass.name);
  json.field("seconds", pass.seconds);
  json.field("changed", pass.changed);
  json.field("is_optional", pass.is_optional);
  json.field("rewrites", pass.rewrites.size());
  json.field("program", pass.program);
  json.field("nodes_before", pass.nodes_before);
  json.field("nodes_after", pass.nodes_after);
  write_objects(json.key("made"), pass.rewrites);
}

// Where `bisect_passes` stopped.
void write_last_rewrite(JsonWriter& json, const std::vector<PassRunner::Timing>& passes) {
  const auto last = std::find_if(passes.rbegin(), passes.rend(), [](const PassRunner::Timing& pass) {
    return pass.is_optional && !pass.rewrites.empty();
  });
  if (last == passes.rend()) return;
  json.key("last_rewrite");
  json.begin_object();
  json.field("pass", last->name);
  write_fields(json, last->rewrites.back());
  json.end_object();
}

void write_fields(JsonWriter& json, const Refusals::value_type& entry) {
  json.field("region", entry.first.region);
  json.field("node", entry.first.node);
  json.field("reason", entry.first.reason);
  json.field("count", entry.second);
}

void write_fields(JsonWriter& json, const Repeats& repeats) {
  json.field("path", repeats.path);
  json.field("layers", repeats.layers);
  json.field("distinct", repeats.distinct);
}

void write_fields(JsonWriter& json, const NodePrecision& each) {
  json.field("node", each.node);
  json.field("op", each.op);
  json.field("source", each.source);
  json.field("operands", name(each.choice.operands));
  json.field("weight", name(each.choice.weight));
  json.field("reason", each.choice.reason);
}

template <typename Range>
void write_objects(JsonWriter& json, const Range& items) {
  json.begin_array();
  for (const auto& item : items) {
    json.begin_object();
    write_fields(json, item);
    json.end_object();
  }
  json.end_array();
}

void write_tuning(JsonWriter& json, const TuningReport& tuning) {
  json.key("tuning").begin_object();
  json.field("sites", tuning.sites);
  json.field("timed", tuning.timed);
  json.field("before_us", tuning.before_us);
  json.field("after_us", tuning.after_us);
  json.field("note", tuning.note);
  json.end_object();
}

double total_seconds(const std::vector<Phases::Phase>& phases) {
  double seconds = 0;
  for (const Phases::Phase& phase : phases) seconds += phase.seconds;
  return seconds;
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
    const auto imported = [&] { return import(options_.immutable_weights); };
    const std::shared_ptr<EngineData> data =
        import ? compile_model(program, imported, options_, backends(), hooks, &report_)
               : compile(program, options_, backends(), hooks, &report_);
    target_ = data->target;
    data->metadata = metadata_;
    declare_shards(*data, options_.shards);
    require_no_parts(*data);
    if (options_.strip_weights || !options_.weights_files.empty()) return stripped(*data);
    // For another processor: weights are prepared when the engine is loaded there.
    if (!can_run(*data, host(), options_.gpu)) return std::make_unique<ingot_engine>(data);
    phases_.begin("prepare weights");
    // Results of init on a device stay there.
    if (!options_.keep_original_weights && data->devices.empty())
      prepare_weights(*data, host(), options_.gpu);
    return std::make_unique<ingot_engine>(Engine::create(data, host(), options_.gpu));
  }

  std::unique_ptr<ingot_engine> stripped(const EngineData& built) const {
    const auto data = std::make_shared<EngineData>(without_weights(built));
    for (size_t i = 0; i < built.sources.size(); ++i) {
      if (!built.sources[i].is_saved) data->sources[i].data = built.sources[i].data;  // no file has them
    }
    if (!options_.keep_original_weights) data->weights_form = WeightsForm::kPrepared;
    if (!options_.weights_files.empty()) api::leave_weights_to(options_.weights_files, built, *data);
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

  // A file with one rank's parts in it would be taken for one of all ranks.
  void require_no_parts(const EngineData& data) const {
    const auto is_part = [](const SourceWeight& source) { return !source.shards.empty(); };
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

  const BuildReport& build_report() const { return report_; }
  std::vector<PassRunner::Timing> passes() const { return report_.passes; }

  std::string report() const {
    const std::vector<Phases::Phase> phases = phases_.phases();
    JsonWriter json;
    json.begin_object();
    json.field("target", target_);
    json.field("seconds", total_seconds(phases));
    write_objects(json.key("phases"), phases);
    write_objects(json.key("passes"), report_.passes);
    if (!report_.passes.empty()) write_last_rewrite(json, report_.passes);
    json.list("disabled_without_node", report_.without_node);
    json.list("unused_backend_of", report_.unused_backend_of);
    write_objects(json.key("backends"), report_.nodes.backends);
    json.field("kernels", report_.kernels);
    json.field("distinct_kernels", report_.distinct_kernels);
    json.field("reused_kernels", report_.reused_kernels);
    json.list("new_kernels", report_.new_kernels);
    write_objects(json.key("repeats"), report_.repeats);
    json.field("is_from_cache", report_.is_from_cache);
    json.field("verified_kernels", report_.verified_kernels);
    write_tuning(json, report_.tuning);
    write_objects(json.key("slow"), report_.slow);
    write_objects(json.key("precisions"), report_.nodes.precisions);
    write_objects(json.key("not_fused"), report_.nodes.refusals);
    json.field("arena_bytes", report_.arena_bytes);
    json.field("arena_lower_bound", report_.arena_lower_bound);
    json.end_object();
    return std::move(json).text();
  }

 private:
  const ingot_build_options given_;
  CompileOptions options_;
  std::map<std::string, std::string> metadata_;
  Phases phases_;
  BuildReport report_;
  std::string target_;
};

// Of a program that is one engine: those that Python divides are asked when all are built.
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
  const auto host = std::ranges::find(backends(), "cpu", &Backend::name);
  if (!is_device || host == backends().end())
    target.host_device.clear();
  else
    target.host_device = (*host)->device(target.host_device);
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
  JsonWriter json;
  write_objects(json, find_slow(program, checked_options(copy_of(options)), backends()));
  return std::move(json).text();
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
