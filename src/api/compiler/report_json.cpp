// SPDX-License-Identifier: Apache-2.0
#include "api/compiler/report_json.h"

#include <algorithm>

#include "support/json_writer.h"

namespace ingot::core::api {
namespace {

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

void write_report(JsonWriter& json, const BuildReport& report) {
  write_objects(json.key("passes"), report.passes);
  if (!report.passes.empty()) write_last_rewrite(json, report.passes);
  json.list("disabled_without_node", report.without_node);
  json.list("unused_backend_of", report.unused_backend_of);
  write_objects(json.key("backends"), report.nodes.backends);
  json.field("kernels", report.kernels);
  json.field("distinct_kernels", report.distinct_kernels);
  json.field("reused_kernels", report.reused_kernels);
  json.list("new_kernels", report.new_kernels);
  write_objects(json.key("repeats"), report.repeats);
  json.field("is_from_cache", report.is_from_cache);
  json.field("verified_kernels", report.verified_kernels);
  write_tuning(json, report.tuning);
  if (report.folded) {
    json.key("folded_weights").begin_object();
    json.field("operators", report.folded->operators);
    json.field("numbers", report.folded->numbers);
    json.end_object();
  }
  write_objects(json.key("slow"), report.slow);
  write_objects(json.key("precisions"), report.nodes.precisions);
  write_objects(json.key("not_fused"), report.nodes.refusals);
  json.field("arena_bytes", report.arena_bytes);
  json.field("arena_lower_bound", report.arena_lower_bound);
}

}  // namespace

std::string report_json(const std::vector<LevelReport>& levels, const std::vector<Phases::Phase>& phases) {
  JsonWriter json;
  json.begin_object();
  json.field("target", levels.front().target);
  json.field("seconds", total_seconds(phases));
  write_objects(json.key("phases"), phases);
  write_report(json, levels.front().report);
  json.key("levels").begin_array();
  for (const LevelReport& level : levels) {
    if (levels.size() == 1) break;
    json.begin_object().field("target", level.target);
    write_report(json, level.report);
    json.end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

std::string slow_json(std::span<const SlowNode> slow) {
  JsonWriter json;
  write_objects(json, slow);
  return std::move(json).text();
}

}  // namespace ingot::core::api
