// SPDX-License-Identifier: Apache-2.0
// ONNX models for viewers: of engines, and of models on their way to one.
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "api/compiler/backends.h"
#include "api/compiler/build.h"
#include "api/compiler/model_file.h"
#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "compiler/key_graph.h"
#include "compiler/model_graphs.h"
#include "engine/is_engine.h"
#include "exporters/onnx/describe.h"
#include "exporters/onnx/export_engine.h"
#include "exporters/onnx/export_graphs.h"
#include "importers/aten/import.h"
#include "runtime/snapshot.h"
#include "support/error.h"
#include "support/paths.h"

using namespace ingot::core;

namespace {

std::string text_or(const char* text, std::string_view otherwise) {
  return std::string(text == nullptr || *text == '\0' ? otherwise : text);
}

GraphStage graph_stage(const std::string& stage) {
  if (stage == "imported") return GraphStage::kImported;
  if (stage == "optimized") return GraphStage::kOptimized;
  if (stage == "steps")
    throw UserError("INGOT-U002", "the steps of a model are known once it is built",
                    "build an engine and export that, or choose the stage imported or optimized");
  throw UserError("INGOT-U002", fmt::format("there is no stage \"{}\" of a model", stage),
                  "use imported or optimized");
}

std::string what_is_shown(GraphStage stage) {
  return stage == GraphStage::kImported ? "A model's graph as Ingot imported it"
                                        : "A model's graph after Ingot's passes";
}

exported::Metadata metadata_of(const aten::Program& program, const std::string& stage,
                               const CompileOptions& options) {
  exported::Metadata metadata = {{"ingot", ingot_version()}, {"shows", stage}, {"origin", program.origin}};
  if (stage == "optimized") metadata.emplace_back("target", options.target.text());
  return metadata;
}

std::string export_model(const api::Model& model, const std::string& stage_name,
                         const ingot_build_options* given) {
  const GraphStage stage = graph_stage(stage_name);
  const CompileOptions options = api::checked_options(api::copy_of(given));
  const auto import = [&] {
    return model.import ? model.import(options.immutable_weights)
                        : aten::import_program(model.program, import_options(options));
  };
  const ModelGraphs graphs = model_graphs(model.program, import, stage, options, api::backends());
  const auto weight = [&](int64_t source) -> std::optional<Tensor> {
    return to_dense(graphs.model.weights.at(static_cast<size_t>(source)).value.view);
  };
  return exported::to_bytes(
      exported::export_graphs({.main = graphs.split.main,
                               .init = graphs.split.init,
                               .weight = weight,
                               .outputs = graphs.outputs,
                               .doc = exported::doc_of_model(what_is_shown(stage)),
                               .metadata = metadata_of(model.program, stage_name, options)}));
}

std::string export_key(const EngineData& engine) {
  const Graph graph = graph_of_key(engine), init("init");
  std::vector<std::string> outputs;
  for (const Port& output : engine.main.outputs) outputs.push_back(output.name);
  exported::Metadata metadata = {
      {"ingot", ingot_version()}, {"shows", "imported"}, {"origin", engine.origin}};
  return exported::to_bytes(exported::export_graphs(
      {.main = graph,
       .init = init,
       .weight = [](int64_t) { return std::optional<Tensor>(); },
       .outputs = outputs,
       .doc = exported::doc_of_model("The graph that Ingot's engine '" + engine.name +
                                     "' was built from, without the names of its nodes and weights"),
       .metadata = std::move(metadata)}));
}

std::string export_data(const EngineData& engine, const std::string& stage) {
  if (stage == "steps") return exported::to_bytes(exported::export_engine(engine));
  if (stage == "imported") return export_key(engine);
  throw UserError("INGOT-U002", fmt::format("there is no stage \"{}\" of an engine", stage),
                  "use steps or imported, or export the model");
}

// An engine is finished: options of builds change nothing about it.
std::string export_engine_file(const char* path, const std::string& stage, const ingot_build_options* given) {
  const ingot_build_options options = api::copy_of(given);
  if (options.option_count > 0)
    throw UserError("INGOT-U002",
                    fmt::format("the option \"{}\" changes nothing about '{}', which is built already",
                                options.options[0].name, path),
                    "leave it out, or export the model");
  return export_data(open_copy(to_path(path))->data(), stage);
}

}  // namespace

extern "C" {

ingot_status* ingot_engine_export_onnx(const ingot_engine* engine, const char* stage, ingot_text** onnx) {
  return api::guard([&] {
    api::require(engine, "engine");
    api::require(onnx, "onnx");
    *onnx = api::make_text(export_data(
        engine->engine == nullptr ? *engine->data : *current_data(engine->engine), text_or(stage, "steps")));
  });
}

ingot_status* ingot_export_onnx(const char* path, const char* stage, const ingot_build_options* options,
                                ingot_text** onnx) {
  return api::guard([&] {
    api::require(path, "path");
    api::require(onnx, "onnx");
    const bool is_built = is_engine(MappedFile::open(to_path(path))->bytes());
    const std::string chosen = text_or(stage, is_built ? "steps" : "optimized");
    *onnx = api::make_text(is_built ? export_engine_file(path, chosen, options)
                                    : export_model(api::read_model_file(path), chosen, options));
  });
}

}  // extern "C"
