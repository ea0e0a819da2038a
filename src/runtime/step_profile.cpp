// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_profile.h"

#include <algorithm>
#include <numeric>

#include "engine/inspect.h"
#include "support/error.h"
#include "support/json_writer.h"

namespace ingot::core {
namespace {

int64_t nanoseconds(StepProfile::Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

int64_t median(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Symbols that steps bind have no value before a run: sizes that depend on them count as unknown.
int64_t evaluate_or_zero(const Dim& dim, const SymbolValues& sizes) {
  const auto is_known = [&](const std::string& symbol) { return sizes.contains(symbol); };
  return std::ranges::all_of(dim.symbols(), is_known) ? evaluate(dim, sizes) : 0;
}

// The minimum time of the step's work on this machine, divided by its measured time.
double roof_share(double operations, double bytes, double seconds, Roof& roof) {
  const double peak = roof.operations_per_second();
  const double computing = peak > 0 ? operations / peak : 0;
  const double moving = bytes / roof.bytes_per_second(static_cast<int64_t>(bytes));
  return seconds > 0 ? std::max(computing, moving) / seconds : 0;
}

void write_operators(JsonWriter& json, const Step& step, const EngineData& data) {
  json.key("operators").begin_array();
  for (const uint32_t id : step.nodes) {
    const NodeRecord& node = data.nodes[id];
    json.begin_object()
        .field("op", node.op)
        .field("name", node.name)
        .field("source", node.source)
        .end_object();
  }
  json.end_array();
}

}  // namespace

void StepProfile::start_over(const Executable& executable, const RunPlan& plan) {
  key_ = plan.key;
  sizes_.clear();
  const std::vector<std::string>& symbols = executable.dims->table.symbols();
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (!executable.dims->data_dependent[i]) sizes_.emplace(symbols[i], plan.symbols[i]);
  }
  runs_.clear();
  steps_.assign(executable.steps.size(), {});
  for (size_t i = 0; i < steps_.size(); ++i) {
    steps_[i].operations = evaluate_or_zero(executable.steps[i].step->operations, sizes_);
    steps_[i].bytes = evaluate_or_zero(executable.steps[i].step->bytes, sizes_);
  }
}

void StepProfile::begin_run(const Executable& executable, const RunPlan& plan) {
  if (steps_.empty() || key_ != plan.key) start_over(executable, plan);
  start_ = Clock::now();
}

void StepProfile::add(size_t step, Clock::time_point start, Clock::time_point end) {
  steps_[step].start = nanoseconds(start - start_);
  steps_[step].last = nanoseconds(end - start);
}

void StepProfile::end_run() {
  runs_.push_back(nanoseconds(Clock::now() - start_));
  for (StepRecord& record : steps_) record.nanoseconds.push_back(record.last);
}

std::vector<int64_t> StepProfile::least_nanoseconds() const {
  std::vector<int64_t> least;
  for (const StepRecord& record : steps_) {
    if (!record.nanoseconds.empty()) least.push_back(*std::ranges::min_element(record.nanoseconds));
  }
  return least;
}

std::string StepProfile::json(const EngineData& data, ThreadPool& pool) const {
  if (runs_.empty()) throw UserError("INGOT-U340", "nothing has run since profiling was turned on");
  Roof roof(pool);
  std::vector<int64_t> medians;
  for (const StepRecord& record : steps_) medians.push_back(median(record.nanoseconds));
  const double all = std::max(1.0, std::accumulate(medians.begin(), medians.end(), 0.0));
  JsonWriter json;
  json.begin_object().field("runs", runs_.size()).field("threads", pool.threads());
  json.key("sizes").begin_object();
  for (const auto& [symbol, value] : sizes_) json.field(symbol, value);
  json.end_object().field("median_ns", median(runs_));
  json.key("roof").begin_object().field("operations_per_second", roof.operations_per_second()).end_object();
  json.key("steps").begin_array();
  for (size_t i = 0; i < steps_.size(); ++i) {
    const StepRecord& record = steps_[i];
    json.begin_object();
    write_step_fields(json, data.main.steps[i], data);
    write_operators(json, data.main.steps[i], data);
    json.field("median_ns", medians[i]).field("min_ns", *std::ranges::min_element(record.nanoseconds));
    json.field("share", static_cast<double>(medians[i]) / all);
    json.field("operations", record.operations).field("bytes", record.bytes);
    json.field("roof_share",
               roof_share(static_cast<double>(record.operations), static_cast<double>(record.bytes),
                          static_cast<double>(medians[i]) * 1e-9, roof));
    json.field("start_ns", record.start).field("last_ns", record.nanoseconds.back()).end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

}  // namespace ingot::core
