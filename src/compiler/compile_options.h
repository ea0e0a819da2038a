// SPDX-License-Identifier: Apache-2.0
// What a build is asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "cache/write_policy.h"
#include "compiler/dim_profile.h"
#include "passes/pass_runner.h"

namespace ingot::core {

// What a build looks up, and keeps for later ones.
struct CacheOptions {
  bool reuse = true, keep = true;
  std::string folder;                     // of entries on disk; "": that of the process; "off": none
  int64_t limit = int64_t{5} << 30;       // bytes of all entries, where `folder` is given
  bool strict = false;                    // problems of caches are errors
  std::string server;                     // address; "": that of the environment; "off": none
  std::string signing_key, trusted_keys;  // files; "": those of the environment
  std::string ca_file;                    // of certificates, for https; "": the system's
  bool read_only = false;                 // nothing is added to the server
  int64_t deadline_ms = 10'000;           // of each call of the server
  WritePolicies writes;
};

struct CompileOptions {
  Target target;
  std::vector<std::string> levels;  // devices of an engine for several processors, of which `target` has the
                                    // first; empty: it is for one
  PassOptions passes;
  std::vector<DimProfile> profiles;
  bool require_full_compilation = false;
  bool verify_kernels = false;
  bool keep_original_weights = false;      // ship the model's weights and run init at load
  bool strip_weights = false;              // ship no weights: they are given when the engine is loaded
  std::vector<std::string> weights_files;  // hold the weights that the engine does without
  bool immutable_weights = false;          // weights are constants, which may be folded
  std::optional<int64_t> random_seed;      // the engine draws random numbers itself
  bool share_kernels = true;               // false: each use of a kernel is compiled
  CacheOptions cache;
  std::string tactic_file;          // of levels 4 and 5; "": in the cache's folder
  std::string rank;                 // which may run a program with collectives, see set_only_rank
  std::vector<std::string> shards;  // "PATTERN:AXIS/PARTS", "...@GROUP", see declare_shards
  int gpu = 0;                      // where kernels are verified and timed, and the engine runs then
  int threads = 1;                  // that build; how an engine's work is split is decided where it runs
};

}  // namespace ingot::core
