// SPDX-License-Identifier: Apache-2.0
// The time of an engine's main program at its typical sizes, with one choice of kernels or another.
#pragma once

#include <memory>
#include <vector>

#include "compiler/quiet.h"
#include "engine/engine_data.h"
#include "runtime/arguments.h"
#include "runtime/context.h"
#include "runtime/engine.h"

namespace ingot::core {

class ProgramTimer {
 public:
  // Loads the kernel binaries and weights of `engine`, and runs init.
  // `gpu`: of an engine for GPUs. `quiet`: runs of others, which a timing waits for, and is repeated after
  // (may be empty).
  ProgramTimer(const EngineData& engine, Host& host, int gpu, QuietCallback quiet);

  // `main` differs from the engine's main program in its launches only. Microseconds of a run: the least of
  // some series of runs, or beside runs of others the sum of its steps. What is enqueued on a device is timed
  // to its end.
  double microseconds(const Program& main);
  // Of each step alone: devices finish it before the next begins.
  std::vector<double> step_microseconds(const Program& main);

 private:
  void place_arguments(const EngineData& data, int whole);  // whole numbers are all that
  bool takes_arguments();
  void run(Context& context);
  double time(Context& context, int runs);  // microseconds of one of them
  std::vector<double> steps_of_a_run(Context& context);
  bool runs_in_pauses() const { return memory_ == nullptr && !quiet_.is_alone(); }
  std::vector<double> steps_in_pauses(Context& context);
  static void* find_output(void* timer, size_t index, DType dtype, std::span<const int64_t> shape,
                           size_t bytes);

  std::shared_ptr<const EngineData> data_;
  std::shared_ptr<Engine> engine_;
  DeviceMemory* memory_ = nullptr;  // of inputs and outputs; null: the host's
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<std::shared_ptr<std::byte>> inputs_, outputs_;
  std::vector<Argument> arguments_;
  Quiet quiet_;
};

}  // namespace ingot::core
