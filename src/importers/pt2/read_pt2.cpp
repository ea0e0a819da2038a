// SPDX-License-Identifier: Apache-2.0
#include "importers/pt2/read_pt2.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "importers/aten/program/passed_numbers.h"
#include "importers/pt2/archive.h"
#include "importers/pt2/graph_reader.h"
#include "importers/pt2/signature.h"
#include "support/error.h"
#include "support/file.h"
#include "types/symbol_name.h"

namespace ingot::core::pt2 {
namespace {

constexpr int64_t kSchemaMajor = 8;

std::string read_schema_version(Json program) {
  const Json version = program.at("schema_version");
  const int64_t major = version.at("major").integer();
  std::string text = fmt::format("{}.{}", major, version.at("minor").integer());
  if (major != kSchemaMajor)
    throw UnsupportedError(
        "INGOT-N502",
        fmt::format("the program has export schema {}, but only {}.x is supported", text, kSchemaMajor),
        "save the program again with torch 2.11 to 2.15");
  return text;
}

// {"s0": {"min_val": 2, "max_val": null}}: null means unbounded.
SymbolTable read_ranges(Json program) {
  SymbolTable symbols;
  const std::optional<Json> constraints = program.find("range_constraints");
  if (!constraints) return symbols;
  for (const auto [name, constraint] : constraints->members()) {
    if (!is_symbol_name(name)) continue;  // names that the program cannot use
    const std::optional<Json> min = constraint.find("min_val"), max = constraint.find("max_val");
    DimRange range{min ? min->integer() : INT64_MIN, max ? max->integer() : INT64_MAX};
    if (range.max >= INT64_MAX - 1) range.max = INT64_MAX;  // infinity of older writers
    if (range.min > range.max)
      throw UserError("INGOT-U508",
                      fmt::format("the range {}..{} of symbol '{}' is empty", range.min, range.max, name));
    symbols[std::string(name)].range = range;
  }
  return symbols;
}

std::vector<std::string> read_texts(std::optional<Json> list) {
  std::vector<std::string> texts;
  if (list)
    for (const Json item : list->items()) texts.emplace_back(item.text());
  return texts;
}

// The model's signature: the first entry is the model itself.
void read_calling_convention(Json graph_module, aten::Program& program) {
  const std::optional<Json> calls = graph_module.find("module_call_graph");
  if (!calls || calls->items().size() == 0) return;
  const std::optional<Json> signature = (*calls->items().begin()).find("signature");
  if (!signature) return;
  program.input_tree = signature->at("in_spec").text();
  program.output_tree = signature->at("out_spec").text();
  program.argument_names = read_texts(signature->find("forward_arg_names"));
}

// The entries of the state dict that are not inputs: tied to one, or not read.
std::vector<aten::OtherName> read_other_names(Payloads& weights, const aten::Graph& graph,
                                              ReadContext& context) {
  std::map<ViewKey, std::string> inputs;
  std::set<std::string_view> known;
  for (const aten::Input& input : graph.inputs) {
    if (!input.data) continue;
    known.insert(input.name);
    inputs.emplace(key_of(input.data->view), input.name);
  }
  std::vector<aten::OtherName> others;
  for (const std::string& name : weights.names()) {
    if (known.contains(name)) continue;
    aten::OtherName& other = others.emplace_back(aten::OtherName{name, ""});
    if (weights.is_pickled(name)) continue;
    const auto same = inputs.find(key_of(weights.find(name, context).view));
    if (same != inputs.end()) other.tied_to = same->second;
  }
  return others;
}

aten::Program read_program(const Archive& archive, bool verify_values) {
  const JsonDocument document = archive.program();
  const Json json = document.root();
  aten::Program program;
  program.graph.symbols = read_ranges(json);
  ReadContext context{DimReader(program.graph.symbols), read_schema_version(json)};
  const std::optional<Json> torch_version = json.find("torch_version");
  program.origin = fmt::format("torch {}, schema {}",
                               torch_version ? torch_version->text() : "of unknown version", context.schema);
  program.guards = read_texts(json.find("guards_code"));

  const Json graph_module = json.at("graph_module");
  const Json graph = graph_module.at("graph");
  read_calling_convention(graph_module, program);
  const std::optional<JsonDocument> weights = archive.weights_config(),
                                    constants = archive.constants_config();
  ProgramPayloads payloads{archive.payloads("data/weights/", weights),
                           archive.payloads("data/constants/", constants)};
  ValueScope scope(graph, program.graph, context);
  read_inputs(graph_module, payloads, scope);
  program.other_names = read_other_names(payloads.weights, program.graph, context);
  read_nodes(graph, scope);
  read_outputs(graph_module, scope);
  aten::pass_numbers(program.graph);
  if (verify_values) {
    payloads.weights.verify();
    payloads.constants.verify();
  }
  const std::optional<Json> single = graph.find("is_single_tensor_return");
  program.graph.single_tensor_return = single && single->boolean();
  return program;
}

// All parameters, buffers and constants of the archive, but tensor subclasses among the constants.
std::vector<NamedTensor> read_tensors(const Archive& archive) {
  SymbolTable no_symbols;
  ReadContext context{DimReader(no_symbols), "of the weights"};
  const std::optional<JsonDocument> weights = archive.weights_config(),
                                    constants = archive.constants_config();
  ProgramPayloads payloads{archive.payloads("data/weights/", weights),
                           archive.payloads("data/constants/", constants)};
  std::vector<NamedTensor> tensors;
  const auto add = [&](Payloads& from, const std::string& name) {
    tensors.push_back({name, from.find(name, context)});
  };
  for (const std::string& name : payloads.weights.names()) add(payloads.weights, name);
  for (const std::string& name : payloads.constants.names()) {
    if (!payloads.constants.is_pickled(name)) add(payloads.constants, name);
  }
  payloads.weights.verify();
  payloads.constants.verify();
  return tensors;
}

// Errors of `read` that are about the file name it, if it has a name.
template <typename Read>
auto name_file(const std::string& file, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    const bool is_of_file = error.kind() == ErrorKind::kUser || error.kind() == ErrorKind::kUnsupported;
    if (!is_of_file || file.empty()) throw;
    ErrorDetails details = error.details();
    details.message = fmt::format("{}: {}", file, details.message);
    if (error.kind() == ErrorKind::kUser) throw UserError(std::move(details));
    throw UnsupportedError(std::move(details));
  }
}

}  // namespace

aten::Program read_pt2(Bytes archive, std::shared_ptr<const void> owner, const ReadOptions& options) {
  return name_file(options.name, [&] {
    return read_program(Archive(archive, std::move(owner), options),
                        options.verify_checksums && options.verify_values);
  });
}

std::vector<NamedTensor> read_pt2_weights(const std::shared_ptr<const MappedFile>& file) {
  return name_file(file->path().string(), [&] { return read_tensors(Archive(file->bytes(), file, {})); });
}

aten::Program read_pt2(const std::shared_ptr<const MappedFile>& file) {
  return read_pt2(file->bytes(), file, {.name = file->path().string()});
}

}  // namespace ingot::core::pt2
