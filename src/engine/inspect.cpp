// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "engine/group_uses.h"
#include "engine/levels.h"
#include "engine/lifetimes.h"
#include "engine/platforms.h"
#include "support/json_writer.h"

namespace ingot::core {
namespace {

std::string_view kind_of(const Step& step) {
  constexpr std::string_view kNames[] = {"kernel", "routine", "copy", "branch", "loop"};  // by Action
  return kNames[step.action.index()];
}

int64_t typical_size(const SymbolInfo& info) {
  constexpr int64_t kModerate = 128;
  return info.typical.value_or(std::clamp<int64_t>(kModerate, std::max<int64_t>(info.range.min, 1),
                                                   std::max<int64_t>(info.range.max, 1)));
}

void write_port(JsonWriter& json, const Port& port, const SymbolTable& symbols) {
  const TensorType type = type_for_callers(port);
  json.begin_object().field("name", port.name).field("dtype", name(type.dtype));
  std::vector<std::string> dims;
  for (const Dim& dim : type.shape) dims.push_back(dim.to_string());
  json.list("dims", dims).key("ranges").begin_array();
  for (const Dim& dim : type.shape) {
    const DimRange range = range_of(dim, symbols);
    json.begin_array().value(range.min).value(range.max).end_array();
  }
  json.end_array().end_object();
}

void write_ports(JsonWriter& json, std::string_view name, const std::vector<Port>& ports,
                 const SymbolTable& symbols) {
  json.key(name).begin_array();
  for (const Port& port : ports) write_port(json, port, symbols);
  json.end_array();
}

void write_launch(JsonWriter& json, const Launch& launch) {
  json.key("sizes").begin_array();
  for (const Dim& size : launch.sizes) json.value(size.to_string());
  json.end_array().list("constants", launch.constants);
}

constexpr std::string_view kHost = "host";

std::string_view name_of(Place place, const EngineData& engine) {
  return place.kind == Place::Kind::kHost ? kHost : std::string_view(engine.devices[place.index]);
}

// "cuda", "cpu", or "host" for routines, branches and loops; of a copy "host to cuda".
std::string runner_of(const Program& program, const Step& step, const EngineData& engine) {
  if (const auto* kernel = step.as<KernelStep>()) return kernel->backend;
  const auto place = [&](size_t use) {
    return name_of(program.buffers[step.uses[use].buffer].place, engine);
  };
  if (is_device_collective(step)) return std::string(place(0));
  if (step.as<CopyStep>() == nullptr) return std::string(kHost);
  return place(0) == place(1) ? std::string(place(0)) : fmt::format("{} to {}", place(0), place(1));
}

// `span`: of consecutive steps that the same runs.
void write_step(JsonWriter& json, const Program& program, const Step& step, size_t span,
                const EngineData& engine) {
  json.begin_object();
  write_step_fields(json, program, step, engine);
  json.field("span", span);
  if (const auto* kernel = step.as<KernelStep>()) write_launch(json, kernel->launch);
  json.field("operations", step.operations.to_string()).field("bytes", step.bytes.to_string());
  json.list("nodes", step.nodes).end_object();
}

// Limits the bytes that a program may claim per buffer, so that sums over all buffers fit into 64 bits.
constexpr int64_t kMostBytes = int64_t{1} << 46;

// The arenas of a program at the typical sizes; one entry per buffer.
struct TypicalArena {
  std::vector<int64_t> bytes, offsets;  // 0 for other buffers, and where the size depends on data
  int64_t total = 0;                    // of the arenas of all places
};

TypicalArena typical_arena(const Program& program) {
  SymbolValues sizes;
  for (const auto& [name, info] : program.symbols) sizes.emplace(name, typical_size(info));
  const size_t count = program.buffers.size();
  TypicalArena arena{.bytes = std::vector<int64_t>(count), .offsets = std::vector<int64_t>(count)};
  for (size_t id = 0; id < count; ++id) {
    const auto* storage = program.buffers[id].as<ArenaStorage>();
    if (storage == nullptr) continue;
    const auto symbols = storage->bytes.symbols();
    const bool known =
        std::ranges::all_of(symbols, [&](const std::string& symbol) { return sizes.contains(symbol); });
    if (known) arena.bytes[id] = std::min(evaluate(storage->bytes, sizes), kMostBytes);
  }
  std::set<uint8_t> places;
  for (const Buffer& buffer : program.buffers) places.insert(place_number(buffer.place));
  for (const uint8_t place : places)
    arena.total += place_arena(program, numbered_place(place), arena.bytes, arena.offsets);
  return arena;
}

void write_arena(JsonWriter& json, const Program& program) {
  const TypicalArena arena = typical_arena(program);
  const std::vector<Lifetime> lives = lifetimes(program);
  json.key("arena").begin_array();
  for (size_t id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (buffer.as<ArenaStorage>() == nullptr || !lives[id].used()) continue;
    json.begin_object().field("name", buffer.name).field("type", to_string(buffer.type));
    json.field("place", place_number(buffer.place)).field("bytes", arena.bytes[id]);
    json.field("offset", arena.offsets[id]).field("first", lives[id].first);
    json.field("last", lives[id].last).end_object();
  }
  json.end_array();
}

// The groups, and a size for each combination of ranks in them, that of the last group changing fastest.
void write_rank_sizes(JsonWriter& json, const RankSizes& table) {
  json.key("by_rank").begin_object().key("groups").begin_object();
  for (const RankAxis& axis : table.axes) json.field(axis.group, axis.ranks);
  json.end_object().key("sizes").begin_array();
  for (const int64_t size : table.sizes) json.value(size);
  json.end_array().end_object();
}

void write_program(JsonWriter& json, const Program& program, const EngineData& engine) {
  const MemorySummary memory = memory_at_typical_sizes(program);
  json.begin_object()
      .field("name", program.name)
      .field("arena_bytes", memory.arena)
      .field("live_bytes", memory.live)
      .field("buffer_bytes", memory.buffers);
  json.field("buffers", program.buffers.size()).key("symbols").begin_object();
  for (const auto& [symbol, info] : program.symbols) {
    json.key(symbol).begin_object().field("min", info.range.min).field("max", info.range.max);
    json.field("typical", typical_size(info));
    if (info.by_rank) write_rank_sizes(json, *info.by_rank);
    json.end_object();
  }
  json.end_object().key("steps").begin_array();
  size_t span = 0;
  std::string runner;
  for (const Step& step : program.steps) {
    const std::string own = runner_of(program, step, engine);
    if (!runner.empty() && own != runner) ++span;
    runner = own;
    write_step(json, program, step, span, engine);
  }
  json.end_array();
  write_arena(json, program);
  json.key("nested").begin_array();
  for (const Program& nested : program.nested) write_program(json, nested, engine);
  json.end_array().end_object();
}

void write_conditions(JsonWriter& json, const EngineData& engine) {
  const SpelledSymbols names = spelled_symbols(engine.main);
  json.key("conditions").begin_array();
  for (const SizeCheck& check : engine.checks) {
    json.begin_object().field("kind", name_of(check.kind));
    json.field("condition", to_python(check.condition, spelled_by(names)));
    json.field("over_symbols", to_python(check.condition, spelled_by({})));
    json.field("message", check.message).field("node", check.node).field("source", check.source).end_object();
  }
  json.end_array();
}

void write_images(JsonWriter& json, std::string_view name, const EngineData& engine) {
  json.key(name).begin_array();
  for (const Image& image : engine.images) {
    json.begin_object()
        .field("name", image.kernel)
        .field("target", image.target)
        .field("bytes", image.code.size());
    json.field("key", hex(image.key)).end_object();
  }
  json.end_array();
}

// Those of an engine with several; `missing` is empty where this machine can run the level.
void write_levels(JsonWriter& json, const EngineData& engine) {
  json.key("levels").begin_array();
  if (!engine.other_levels.empty()) {
    for (const EngineData* level : levels_of(engine)) {
      size_t code = 0;
      for (const Image& image : level->images) code += image.code.size();
      json.begin_object().field("cpu", level_name(level->target)).field("target", level->target);
      json.field("kernels", level->images.size()).field("code_bytes", code);
      json.field("key_sha256", hex(digest(as_bytes(level->key)))).field("missing", missing_for(*level));
      json.field("is_used", level == &engine).field("steps", level->main.steps.size());
      write_images(json, "images", *level);
      json.end_object();
    }
  }
  json.end_array();
}

void write_user_metadata(JsonWriter& json, const EngineData& engine) {
  json.key("metadata").begin_object();
  for (const auto& [key, value] : engine.metadata) json.field(key, value);
  json.end_object();
}

void write_sections(JsonWriter& json, const EngineFile& file) {
  json.field("format", file.format())
      .field("bytes", file.size())
      .field("identity", hex(file.identity()))
      .field("signed_by", file.signature() ? hex(file.signature()->key) : "");
  json.key("sections").begin_array();
  for (const SectionInfo& section : file.sections()) {
    json.begin_object()
        .field("name", section.name)
        .field("offset", section.offset)
        .field("bytes", section.length);
    json.field("sha256", hex(section.digest)).end_object();
  }
  json.end_array();
}

void write_weights(JsonWriter& json, const EngineData& engine) {
  constexpr const char* kKinds[] = {"constant", "source", "prepared"};  // by WeightOrigin
  json.field("weights_form", engine.weights_form == WeightsForm::kPrepared ? "prepared" : "original");
  json.list("weights_files", engine.weights_files);
  json.key("weights_ranks").begin_object();
  for (const auto& [group, rank] : engine.weights_ranks) json.field(group, rank);
  json.end_object();
  json.key("weights").begin_array();
  for (const WeightData& weight : engine.weights) {
    json.begin_object()
        .field("name", weight.name)
        .field("type", to_string(weight.type))
        .field("bytes", weight.bytes);
    json.field("kind", kKinds[weight.origin.index()]);
    json.field("kept", weight.data != nullptr || weight.bytes == 0).end_object();
  }
  json.end_array().key("sources").begin_array();
  for (const SourceWeight& source : engine.sources) {
    json.begin_object()
        .field("name", source.name)
        .field("dtype", name(source.dtype))
        .list("shape", source.shape);
    if (!source.shards.empty()) {
      json.key("shards").begin_array();
      for (const ShardAxis& shard : source.shards) {
        json.begin_object().field("axis", shard.axis).field("parts", shard.parts).field("group", shard.group);
        if (!shard.extents.empty()) json.list("extents", shard.extents);
        json.end_object();
      }
      json.end_array();
    }
    // Computed when the engine is written: an engine that was built here and not saved has none.
    if (source.digest != Digest{}) json.field("sha256", hex(source.digest));
    json.end_object();
  }
  json.end_array();
}

void write_kernels(JsonWriter& json, const EngineData& engine) {
  write_images(json, "kernels", engine);
  json.key("nodes").begin_array();
  for (const NodeRecord& node : engine.nodes) {
    json.begin_object()
        .field("name", node.name)
        .field("op", node.op)
        .field("source", node.source)
        .end_object();
  }
  json.end_array();
}

struct SlotWriter {
  JsonWriter& json;

  void operator()(TensorSlot slot) const {
    json.field("kind", "tensor");
    if (slot.is_number) json.field("is_number", true);
  }
  void operator()(SizeSlot) const { json.field("kind", "size"); }
  void operator()(None) const { json.field("kind", "none"); }
  void operator()(bool value) const { json.field("kind", "bool").field("value", value); }
  void operator()(int64_t value) const { json.field("kind", "integer").field("value", value); }
  void operator()(double value) const {  // as text: JSON has no infinity
    json.field("kind", "number").field("value", fmt::format("{}", value));
  }
  void operator()(const std::string& value) const { json.field("kind", "text").field("value", value); }
  void operator()(const PlainValue& value) const { std::visit(*this, value); }
};

// One entry per flat input or output; an engine that was called flat stores none.
void write_slots(JsonWriter& json, std::string_view name, std::vector<CallSlot> slots, size_t tensors) {
  if (slots.empty()) slots.assign(tensors, TensorSlot{});
  json.key(name).begin_array();
  for (const CallSlot& slot : slots) {
    json.begin_object();
    std::visit(SlotWriter{json}, slot);
    json.end_object();
  }
  json.end_array();
}

// A lower bound of any arena: the most bytes that are live at one step.
int64_t most_live_bytes(const Program& program, const std::vector<int64_t>& bytes) {
  const std::vector<Lifetime> lives = lifetimes(program);
  std::vector<int64_t> change(program.steps.size() + 1);
  for (BufferId id = 0; id < bytes.size(); ++id) {
    if (bytes[id] == 0 || !lives[id].used() || root_buffer(program, id) != id) continue;
    change[static_cast<size_t>(lives[id].first)] += bytes[id];
    change[static_cast<size_t>(lives[id].last) + 1] -= bytes[id];
  }
  int64_t live = 0, most = 0;
  for (const int64_t difference : change) most = std::max(most, live += difference);
  return most;
}

}  // namespace

void write_step_fields(JsonWriter& json, const Program& program, const Step& step, const EngineData& engine) {
  json.field("name", step.name).field("kind", kind_of(step));
  json.field("runs_on", runner_of(program, step, engine));
  if (const auto* kernel = step.as<KernelStep>()) {
    json.field("backend", kernel->backend)
        .field("image", kernel->launch.image)
        .field("kernel", engine.images[kernel->launch.image].kernel);
  }
  if (const auto* routine = step.as<RoutineStep>()) {
    json.field("routine", routine->routine);
    if (routine->with_next != kNoId) json.field("with_next", engine.images[routine->with_next].kernel);
  }
}

MemorySummary memory_at_typical_sizes(const Program& program) {
  const TypicalArena arena = typical_arena(program);
  MemorySummary summary{.arena = arena.total, .live = most_live_bytes(program, arena.bytes)};
  for (const int64_t bytes : arena.bytes) summary.buffers += bytes;
  return summary;
}

std::string signature_json(const EngineData& engine) {
  const Signature& signature = engine.signature;
  JsonWriter json;
  json.begin_object()
      .field("name", engine.name)
      .field("origin", engine.origin)
      .field("target", engine.target);
  json.list("argument_names", signature.argument_names).field("input_tree", signature.input_tree);
  const auto bound =
      std::ranges::count_if(signature.mutated_inputs, [](const auto& at) { return at.has_value(); });
  const size_t inputs = engine.main.inputs.size() + static_cast<size_t>(bound);
  json.field("output_tree", signature.output_tree);
  write_slots(json, "inputs", signature.inputs, inputs);
  write_slots(json, "outputs", signature.outputs, engine.main.outputs.size());
  json.end_object();
  return std::move(json).text();
}

std::string inspect_json(const EngineData& engine, const EngineFile* file) {
  JsonWriter json;
  json.begin_object()
      .field("name", engine.name)
      .field("origin", engine.origin)
      .field("target", engine.target);
  json.list("platforms", platforms_of(engine));
  write_levels(json, engine);
  json.field("key_sha256", hex(digest(as_bytes(engine.key)))).field("key", engine.key);
  if (file != nullptr) write_sections(json, *file);
  write_user_metadata(json, engine);
  write_ports(json, "inputs", engine.main.inputs, engine.main.symbols);
  write_ports(json, "outputs", engine.main.outputs, engine.main.symbols);
  write_ports(json, "states", engine.main.states, engine.main.symbols);
  write_conditions(json, engine);
  write_weights(json, engine);
  write_kernels(json, engine);
  json.key("init");
  write_program(json, engine.init, engine);
  json.key("main");
  write_program(json, engine.main, engine);
  json.end_object();
  return std::move(json).text();
}

}  // namespace ingot::core
