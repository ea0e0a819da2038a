// SPDX-License-Identifier: Apache-2.0
// Choosing tactics by timing them (docs/design/017-tuning.md).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/build_report.h"
#include "compiler/phases.h"
#include "compiler/quiet.h"
#include "compiler/tactic_table.h"
#include "engine/engine_data.h"
#include "plan/plan_input.h"
#include "runtime/host.h"

namespace ingot::core {

// A step of the main program whose kernel has other tactics.
struct TunableStep {
  size_t step;       // in the main program
  std::string site;  // of TacticTable
  struct Choice {
    std::string tactic;
    Launch launch;
  };
  std::vector<Choice> choices;  // the first is what the program has
};

// Those of `steps`, from which `planned` was made. Throws InternalError if it was not.
std::vector<TunableStep> tunable_steps(std::span<const NodeStep> steps, const Program& planned);

// What tuning needs of a build.
struct Tuning {
  Host& host;
  int gpu;  // of an engine for GPUs
  Phases& phases;
  int level;
  std::string processor;  // of TacticTable
  QuietCallback quiet;    // empty: nothing else runs
};

// Times the tactics of each site, and gives `engine` the fastest; equal steps get equal ones. Level 4 times
// steps by themselves, level 5 then whole programs. A choice that makes the whole program no faster is not
// taken. Each site that is done becomes a record of `found`: a build that is cancelled goes on there the next
// time.
TuningReport tune(EngineData& engine, std::span<const TunableStep> steps, const Tuning& tuning,
                  TacticTable& found);

// Removes the kernel binaries that no step uses.
void drop_unused_images(EngineData& engine);

}  // namespace ingot::core
