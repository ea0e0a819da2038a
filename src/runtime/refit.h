// SPDX-License-Identifier: Apache-2.0
// New values of a model's weights: what a refit checks, copies and computes before the engine takes the
// result.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "engine/engine_data.h"
#include "engine/program_slice.h"
#include "runtime/weight_set.h"
#include "support/file_system.h"

namespace ingot::core {

// New values by name. Nobody changes the memory of one with an owner while that lives; without an owner, what
// stays is copied.
using SourceValues = std::map<std::string, OwnedView, std::less<>>;
enum class Coverage { kAll, kSome };  // kSome: weights without a new value keep theirs

using NewSources = std::map<size_t, OwnedView>;  // by index in EngineData::sources

// What the values mean for the engine. UserError, the first by name: INGOT-U320 a name that the model never
// had, U321 another shape or dtype, U324 a weight without a new value (kAll), U325 another value for what the
// engine holds as a constant or initial state, U326 different values for two names of one weight.
// The value of a sharded weight is a part, or the whole tensor, of which `ranks` have one: U357 if they are
// not known. kFilledUp: parts of different sizes are then what the weight's type says.
enum class UnknownRanks { kRefuse, kFilledUp };
NewSources check_sources(const EngineData& data, const SourceValues& values, Coverage coverage,
                         const ShardRanks& ranks, UnknownRanks unknown = UnknownRanks::kRefuse);

// Of which ranks the parts are after a refit with values of `given`: where some values stay, of theirs too.
// UserError INGOT-U358 if those are of other ranks.
ShardRanks ranks_after(const EngineData& data, const ShardRanks& known, const ShardRanks& given,
                       Coverage coverage);

// A file of weights, and its version when it was opened (size 0: unknown).
struct WeightsFile {
  std::filesystem::path path;  // absolute
  FileVersion version;
};
// kOfStored: of the weights alone that main uses as they are stored.
enum class Digests { kOfAll, kOfStored };
using WeightsFiles = std::vector<WeightsFile>;
// As check_sources for the values of these files, which must be all those that the engine names by their
// digests: else UserError INGOT-U334.
NewSources check_files(const EngineData& data, const SourceValues& values, const WeightsFiles& files,
                       Digests digests, const ShardRanks& ranks,
                       UnknownRanks unknown = UnknownRanks::kRefuse);

// Points `weights` at the new values: at the caller's memory where it has an owner or only init reads it,
// else at copies.
void take_sources(const EngineData& data, const NewSources& values, WeightSet& weights);

// What init has to compute: results that depend on a new value, and missing ones that it can compute now.
ProgramSlice init_after(const EngineData& data, const NewSources& values, const WeightSet& weights);

// After init: forgets the caller's memory, and keeps the digests of what was there; kYes: they are those of
// `data`.
enum class KnowsDigests { kNo, kYes };
void drop_borrowed(const EngineData& data, const NewSources& values, WeightSet& weights,
                   KnowsDigests known = KnowsDigests::kNo);

}  // namespace ingot::core
