// SPDX-License-Identifier: Apache-2.0
// The levels of an engine: one model compiled for several processors, of which a machine runs one
// (docs/design/056).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine_data.h"
#include "support/cpu_features.h"

namespace ingot::core {

using Levels = std::vector<const EngineData*>;

// All levels of an engine, the one with most features first: their order in a file, whichever is in use.
Levels levels_of(const EngineData& engine);

// "x86-64-v4+vnni" of the target "cpu:x86-64-v4+vnni level 3".
std::string_view level_name(std::string_view target);

// Whether features `a` are before features `b` in the order of levels.
bool is_before(CpuFeatures a, CpuFeatures b);

// The names of several levels, as part of a sentence: "x86-64-v4 or x86-64-v3".
std::string name_levels(const Levels& levels);

// What this machine lacks to run the level, for people; "": nothing. Asks the system for matrix registers.
std::string missing_for(const EngineData& level);

// The index of the level that this machine runs: the first for which it lacks nothing, or the one that is
// called `wanted`. 0 if there is none. UserError INGOT-U220 if `wanted` is none of several.
size_t choose_level(const Levels& levels, std::string_view wanted);

// The same engine in which another level is in use. `levels`: at least one; takes its values.
std::shared_ptr<EngineData> with_level(std::vector<std::shared_ptr<EngineData>> levels, size_t used);

// Gives the other levels the weights of the one in use. What their init makes of them is not known here.
void share_sources(EngineData& engine);

// Throws UserError INGOT-U206 unless the levels differ in their processors and are otherwise of one model,
// with its own weights.
void validate_levels(const Levels& levels);

}  // namespace ingot::core
