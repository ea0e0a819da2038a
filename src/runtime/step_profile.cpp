// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_profile.h"

#include <algorithm>
#include <optional>

#include "engine/inspect.h"
#include "support/error.h"
#include "support/json_writer.h"

namespace ingot::core {
namespace {

constexpr double kSecondsPerNanosecond = 1e-9;

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

// Seconds that a step's work takes at least.
struct LeastTimes {
  double computing = 0, moving = 0;
};

double share_of(const LeastTimes& least, double seconds) {
  return seconds > 0 ? std::max(least.computing, least.moving) / seconds : 0;
}

double over(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

LeastTimes on_host(double operations, double bytes, Roof& roof) {
  return {over(operations, roof.operations_per_second()),
          bytes / roof.bytes_per_second(static_cast<int64_t>(bytes))};
}

// By the dtype of the first values that the step reads.
LeastTimes on_device(const Program& program, const Step& step, double operations, double bytes,
                     const DeviceRates& rates) {
  double rate = rates.float_operations;
  for (const BufferUse& use : step.uses) {
    if (use.buffer == kNoId || !use.reads || !is_floating(program.buffers[use.buffer].type.dtype)) continue;
    const int bits = bit_width(program.buffers[use.buffer].type.dtype);
    rate = bits <= 16 ? rates.half_operations : bits <= 32 ? rate : rates.double_operations;
    break;
  }
  return {over(operations, rate), over(bytes, rates.bytes)};
}

// The limits of where steps run, measured or asked for when the first step needs them.
class Limits {
 public:
  Limits(const EngineData& data, const LoadedBackends& backends, ThreadPool& pool)
      : data_(data), pool_(pool) {
    if (data.devices.empty()) return;
    device_ = backends.all[backends.position(data.devices[0])].executor;
    rates_ = device_->rates();
  }

  const Executor* device() const { return device_; }
  const DeviceRates& rates() const { return rates_; }
  bool is_on_device(const Step& step) const {
    const auto* kernel = step.as<KernelStep>();
    return kernel != nullptr && device_ != nullptr && kernel->backend == device_->name();
  }
  LeastTimes of(const Step& step, double operations, double bytes) {
    if (is_on_device(step)) return on_device(data_.main, step, operations, bytes, rates_);
    const bool computes = step.as<RoutineStep>() != nullptr || step.as<KernelStep>() != nullptr;
    if (device_ != nullptr && !computes) return {};  // copies, branches and loops
    return on_host(operations, bytes, roof());
  }
  Roof& roof() {
    if (!roof_) roof_.emplace(pool_);
    return *roof_;
  }

 private:
  const EngineData& data_;
  ThreadPool& pool_;
  const Executor* device_ = nullptr;
  DeviceRates rates_;
  std::optional<Roof> roof_;
};

// What a step computes and moves, and the median of its times.
struct MeasuredStep {
  double operations, bytes;
  int64_t nanoseconds;
};

void write_device(JsonWriter& json, const EngineData& data, Limits& limits,
                  const std::vector<MeasuredStep>& steps) {
  if (limits.device() == nullptr) return;
  double nanoseconds = 0, computing = 0, moving = 0;
  int64_t kernels = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!limits.is_on_device(data.main.steps[i])) continue;
    const LeastTimes least = limits.of(data.main.steps[i], steps[i].operations, steps[i].bytes);
    ++kernels;
    nanoseconds += static_cast<double>(steps[i].nanoseconds);
    computing += least.computing;
    moving += least.moving;
  }
  const double seconds = std::max(1.0, nanoseconds) * kSecondsPerNanosecond;
  json.key("device").begin_object().field("name", limits.device()->processor()).field("kernels", kernels);
  json.field("bytes_per_second", limits.rates().bytes);
  json.field("half_operations_per_second", limits.rates().half_operations);
  json.field("kernels_ns", static_cast<int64_t>(nanoseconds));
  json.field("memory_share", moving / seconds).field("compute_share", computing / seconds).end_object();
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
  steps_[step].last = !counts_ || counts_() ? nanoseconds(end - start) : kDisturbed;
}

void StepProfile::add(size_t first, Clock::time_point start, std::span<const int64_t> nanoseconds) {
  for (size_t i = 0; i < nanoseconds.size(); ++i) {
    const auto end = start + std::chrono::nanoseconds(nanoseconds[i]);
    add(first + i, start, end);
    start = end;
  }
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

std::string StepProfile::json(const EngineData& data, const LoadedBackends& backends,
                              ThreadPool& pool) const {
  if (runs_.empty()) throw UserError("INGOT-U340", "nothing has run since profiling was turned on");
  Limits limits(data, backends, pool);
  std::vector<MeasuredStep> measured;
  double all = 1;
  for (const StepRecord& record : steps_) {
    measured.push_back({static_cast<double>(record.operations), static_cast<double>(record.bytes),
                        median(record.nanoseconds)});
    all += static_cast<double>(measured.back().nanoseconds);
  }
  JsonWriter json;
  json.begin_object().field("runs", runs_.size()).field("threads", pool.threads());
  json.key("sizes").begin_object();
  for (const auto& [symbol, value] : sizes_) json.field(symbol, value);
  json.end_object().field("median_ns", median(runs_));
  const double operations =
      limits.device() != nullptr ? limits.rates().float_operations : limits.roof().operations_per_second();
  json.key("roof").begin_object().field("operations_per_second", operations).end_object();
  write_device(json, data, limits, measured);
  json.key("steps").begin_array();
  for (size_t i = 0; i < steps_.size(); ++i) {
    const StepRecord& record = steps_[i];
    const LeastTimes least = limits.of(data.main.steps[i], measured[i].operations, measured[i].bytes);
    const auto time = static_cast<double>(measured[i].nanoseconds);
    json.begin_object();
    write_step_fields(json, data.main, data.main.steps[i], data);
    write_operators(json, data.main.steps[i], data);
    json.field("median_ns", measured[i].nanoseconds)
        .field("min_ns", *std::ranges::min_element(record.nanoseconds));
    json.field("share", time / all);
    json.field("operations", record.operations).field("bytes", record.bytes);
    json.field("roof_share", share_of(least, time * kSecondsPerNanosecond));
    json.field("start_ns", record.start).field("last_ns", record.nanoseconds.back()).end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

}  // namespace ingot::core
