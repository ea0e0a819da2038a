// SPDX-License-Identifier: Apache-2.0
// Operations on a filled builder: checking, building, printing.
#include "api/compiler/build.h"
#include "api/compiler/builder.h"
#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "importers/aten/import.h"
#include "importers/aten/program/aten_text.h"
#include "importers/aten/program/guards.h"
#include "support/json_writer.h"

using namespace ingot::core;

namespace {

const aten::Program& finished_program(const ingot_builder* builder) {
  api::require(builder, "builder");
  if (!builder->open.empty()) api::refuse_call("a nested graph is still open");
  return builder->program;
}

std::string refusals_json(const std::vector<aten::Refusal>& refusals) {
  JsonWriter json;
  json.begin_array();
  for (const aten::Refusal& refusal : refusals) {
    json.begin_object();
    json.field("node", refusal.node);
    json.field("target", refusal.target);
    json.field("reason", refusal.reason);
    json.field("source", refusal.source);
    json.end_object();
  }
  json.end_array();
  return std::move(json).text();
}

std::string guards_json(const aten::Program& program) {
  const SpelledSymbols names = aten::spelled_symbols(program.graph);
  JsonWriter json;
  json.begin_array();
  for (const aten::GuardReading& reading : aten::read_guards(program)) {
    json.begin_object();
    json.field("guard", program.guards[reading.guard]);
    json.field("condition", reading.reason.empty() ? to_python(reading.check.condition, spelled_by(names))
                                                   : std::string());
    json.field("source", reading.check.source);
    json.field("reason", reading.reason);
    json.end_object();
  }
  json.end_array();
  return std::move(json).text();
}

}  // namespace

extern "C" {

int32_t ingot_imports_operator(const char* target) {
  return target != nullptr && aten::has_importer(target) ? 1 : 0;
}

ingot_status* ingot_builder_unsupported(ingot_builder* builder, ingot_text** json) {
  return api::guard([&] {
    api::require(json, "json");
    *json = api::make_text(refusals_json(aten::find_unsupported(finished_program(builder).graph)));
  });
}

ingot_status* ingot_builder_unsupported_with(ingot_builder* builder, const ingot_build_options* options,
                                             ingot_text** json) {
  return api::guard([&] {
    api::require(json, "json");
    const bool draws = api::checked_options(api::copy_of(options)).random_seed.has_value();
    *json = api::make_text(refusals_json(aten::find_unsupported(finished_program(builder).graph, draws)));
  });
}

ingot_status* ingot_check_options(const ingot_builder* builder, const ingot_build_options* options) {
  return api::guard(
      [&] { api::check_options(options, builder == nullptr ? nullptr : &finished_program(builder)); });
}

ingot_status* ingot_builder_guards(ingot_builder* builder, ingot_text** json) {
  return api::guard([&] {
    api::require(json, "json");
    *json = api::make_text(guards_json(finished_program(builder)));
  });
}

ingot_status* ingot_builder_slow(ingot_builder* builder, const ingot_build_options* options,
                                 ingot_text** json) {
  return api::guard([&] {
    api::require(json, "json");
    *json = api::make_text(api::slow_nodes(finished_program(builder), options));
  });
}

ingot_status* ingot_builder_build(ingot_builder* builder, const ingot_build_options* options,
                                  ingot_engine** engine, ingot_text** report) {
  return api::guard([&] { api::build(finished_program(builder), options, engine, report); });
}

ingot_status* ingot_builder_text(ingot_builder* builder, ingot_text** text) {
  return api::guard([&] {
    api::require(text, "text");
    *text = api::make_text(aten::to_string(finished_program(builder)));
  });
}

}  // extern "C"
