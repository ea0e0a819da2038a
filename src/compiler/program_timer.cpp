// SPDX-License-Identifier: Apache-2.0
#include "compiler/program_timer.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <thread>
#include <utility>

#include "runtime/memory.h"
#include "runtime/step_profile.h"
#include "runtime/transfers.h"
#include "support/error.h"

namespace ingot::core {
namespace {

// Bools are true, whole numbers `whole`; others are between -1 and 1.
Tensor made_up(DType dtype, std::vector<int64_t> shape, int whole) {
  Tensor tensor = make_tensor(dtype, std::move(shape));
  if (bit_width(dtype) < 8) return tensor;
  const TensorView flat{tensor.data.get(), dtype, {tensor.elements()}, {1}};
  constexpr int64_t kFactor = 7919, kRange = 2048;
  const auto value_at = [&](int64_t i) {
    if (is_floating(dtype)) return static_cast<double>(i * kFactor % kRange) / (kRange / 2) - 1;
    return dtype == DType::kBool ? 1.0 : static_cast<double>(whole);
  };
  for (int64_t i = 0; i < tensor.elements(); ++i) write_double(flat, {&i, 1}, value_at(i));
  return tensor;
}

// The same main program, without what only a build needs.
std::shared_ptr<EngineData> with_main(const EngineData& engine, const Program& main) {
  auto data = std::make_shared<EngineData>(engine);
  data->main = main;
  data->images.clear();
  return data;
}

std::vector<double> in_microseconds(const std::vector<int64_t>& nanoseconds) {
  std::vector<double> result;
  for (const int64_t each : nanoseconds) result.push_back(static_cast<double>(each) / 1e3);
  return result;
}

// A GPU that computes all the time is at the limit of its power, and its clock, not the choice of kernels,
// then decides how long a run takes.
void rest(double microseconds) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(microseconds));
}

}  // namespace

ProgramTimer::ProgramTimer(const EngineData& engine, Host& host, int gpu, QuietCallback quiet)
    : data_(std::make_shared<EngineData>(engine)),
      engine_(Engine::create(data_, host, gpu)),
      quiet_(std::move(quiet)) {
  if (!data_->devices.empty()) memory_ = engine_->backends().memories[1];
  outputs_.resize(data_->main.outputs.size());
  place_arguments(*data_, 1);
  const bool has_whole = std::ranges::any_of(arguments_, [](const Argument& argument) {
    return !is_floating(argument.dtype) && argument.dtype != DType::kBool;
  });
  if (has_whole && !takes_arguments()) place_arguments(*data_, 0);
}

// A mask of zeros hides everything: what is computed then takes a GPU less power, and so less time. But 0
// alone is an index of everything.
bool ProgramTimer::takes_arguments() {
  Context context(engine_);
  if (runs_in_pauses()) {
    context.set_profiling(true, [this] { return quiet_.was_undisturbed(); });
    quiet_.wait();
  }
  try {
    run(context);
    context.synchronize();
  } catch (const UserError& error) {
    if (error.details().code == kCancelled) throw;
    return false;
  }
  return true;
}

void ProgramTimer::place_arguments(const EngineData& data, int whole) {
  shapes_.clear();
  inputs_.clear();
  arguments_.clear();
  const SymbolValues sizes = typical_sizes(data.main.symbols);
  const std::vector<ArgumentSlot> slots = argument_slots(data);
  shapes_.reserve(slots.size());
  for (const ArgumentSlot& slot : slots) {
    std::vector<int64_t>& shape = shapes_.emplace_back();
    for (const Dim& dim : slot.port->type.shape) shape.push_back(evaluate(dim, sizes));
    Tensor value = made_up(slot.port->type.dtype, shape, whole);
    if (memory_ != nullptr) {
      const auto copy = memory_->allocate(value.bytes());
      copy_in(memory_, copy.get(), value.data.get(), value.bytes());
      value.data = copy;
    }
    inputs_.push_back(value.data);
    if (slot.port->is_complex) shape.pop_back();
    arguments_.push_back({.data = value.data.get(),
                          .dtype = type_for_callers(*slot.port).dtype,
                          .rank = static_cast<int32_t>(shape.size()),
                          .shape = shape.data(),
                          .strides = nullptr,
                          .on_device = memory_ != nullptr,
                          .gpu = engine_->gpu()});
  }
}

// The same memory in every run, so that its calls can be replayed.
void* ProgramTimer::find_output(void* timer, size_t index, DType, std::span<const int64_t>, size_t bytes) {
  auto& own = *static_cast<ProgramTimer*>(timer);
  std::shared_ptr<std::byte>& output = own.outputs_[index];
  if (output == nullptr)
    output = own.memory_ != nullptr ? own.memory_->allocate(bytes) : allocate_memory(bytes);
  return output.get();
}

void ProgramTimer::run(Context& context) { context.run(arguments_, {find_output, this, memory_ != nullptr}); }

double ProgramTimer::time(Context& context, int runs) {
  using Clock = std::chrono::steady_clock;
  return quiet_.undisturbed([&] {
    const auto start = Clock::now();
    for (int i = 0; i < runs; ++i) run(context);
    context.synchronize();
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / runs;
  });
}

double ProgramTimer::microseconds(const Program& main) {
  if (runs_in_pauses()) {
    const std::vector<double> steps = step_microseconds(main);
    return std::accumulate(steps.begin(), steps.end(), 0.0);
  }
  constexpr int kFirstRuns = 3, kMostSeries = 6, kLeastSeries = 3;  // the first runs plan, record and warm up
  constexpr double kSeries = 3e3, kAll = 100e3;                     // microseconds
  constexpr double kMostRuns = 50;
  constexpr double kHungry = 500;  // microseconds of a run that takes a GPU much power
  Context context(engine_->variant(with_main(*data_, main)));
  double least = time(context, 1);
  if (least < kSeries) time(context, kFirstRuns - 1);
  least = std::min(least, time(context, 1));
  const auto runs = static_cast<int>(std::clamp(kSeries / least, 1.0, kMostRuns));
  const auto series = std::clamp(static_cast<int>(kAll / (least * runs)), kLeastSeries, kMostSeries);
  for (int i = 0; i < series; ++i) {
    if (memory_ != nullptr && least > kHungry) rest(runs * least);
    least = std::min(least, time(context, runs));
  }
  return least;
}

std::vector<double> ProgramTimer::step_microseconds(const Program& main) {
  constexpr double kAll = 100e3;  // microseconds
  constexpr int kLeastRuns = 3, kMostRuns = 20;
  Context context(engine_->variant(with_main(*data_, main)));
  if (runs_in_pauses()) return steps_in_pauses(context);
  const int runs = std::clamp(static_cast<int>(kAll / time(context, 1)), kLeastRuns, kMostRuns);
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    const std::vector<double> more = steps_of_a_run(context);
    if (times.empty()) times = more;
    for (size_t step = 0; step < more.size(); ++step) times[step] = std::min(times[step], more[step]);
  }
  return times;
}

std::vector<double> ProgramTimer::steps_of_a_run(Context& context) {
  return quiet_.undisturbed([&] {
    context.set_profiling(true);  // starts over
    run(context);
    context.synchronize();
    return in_microseconds(context.step_nanoseconds());
  });
}

// Runs of others may leave pauses shorter than a run: it stops between two steps while they last, and what
// they disturbed is timed again in the next run.
std::vector<double> ProgramTimer::steps_in_pauses(Context& context) {
  constexpr double kAll = 60e3;  // microseconds of all runs, about
  constexpr int kLeastRuns = 4, kMostRuns = 50;
  context.set_profiling(true, [this] { return quiet_.was_undisturbed(); });
  quiet_.wait();
  for (int i = 1; i <= kMostRuns; ++i) {
    run(context);
    const std::vector<int64_t> least = context.step_nanoseconds();
    if (std::ranges::find(least, StepProfile::kDisturbed) != least.end()) continue;
    std::vector<double> times = in_microseconds(least);
    const double sum = std::accumulate(times.begin(), times.end(), 0.0);
    if (i == kMostRuns || (i >= kLeastRuns && sum * i >= kAll)) return times;
  }
  throw UserError(kCancelled, "the build was cancelled: no pause between runs was as long as a step");
}

}  // namespace ingot::core
