// SPDX-License-Identifier: Apache-2.0
// One function per command. Each prints to stdout and throws CommandError.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ingot/ingot.h"

namespace ingot::cli {

// Printed to stderr, with exit status 1 (rejected) or 2 (wrong usage).
struct CommandError : std::runtime_error {
  CommandError(const std::string& message, int exit_status = 1)
      : std::runtime_error(message), status(exit_status) {}
  int status;
  std::map<std::string, std::string> details;  // by name: "code", "message", "advice" ...; may be empty
};

std::string json_of(const CommandError& error);  // as printed with --json
void check(ingot_status* status);                // throws CommandError with the whole text, frees the status
std::string take_text(ingot_text* text);
// "; the nearest is 'build'", or "" if no known word is near.
std::string suggest(std::string_view word, const std::vector<std::string>& known);

struct BuildCommand {
  std::string model, output;
  std::string report;                          // HTML file to write; "": none
  std::map<std::string, std::string> options;  // of the compiler
  std::vector<std::string> metadata;           // "key=value"
  bool json = false;
};
struct RunCommand {
  std::string engine, output;
  std::vector<std::string> inputs;  // "name=file.npy", "file.npz", "file.safetensors", "file.npy" by position
  std::string shapes;               // "name:1x128,..." of inputs that are random
  uint64_t seed = 0;
  int threads = 0;
  std::string verify = "lazy", trust = "any", memory = "map";
  std::string trusted_keys;          // file of public keys; empty: that of the environment
  std::vector<std::string> weights;  // files that the engine's weights come from; empty: its own
  std::string weight_budget;         // of a GPU's memory; empty: all
  std::string cpu;                   // the engine's level that is used; empty: the best that runs here
  int gpu = -1;                      // that an engine for GPUs runs on; -1: the first, or that of its rank
  bool json = false;
  bool without_graphs = false;  // of CUDA
  int ranks = 0;                // processes to start; 0: this one alone
  double deadline = 60;         // seconds that ranks wait for each other
};
struct GenerateCommand {
  RunCommand run;   // how the engine is opened; its seed is that of random choices
  std::string ids;  // "464,3290"
  size_t tokens = 64;
  int64_t stop = -1;       // the token after which it stops; -1: none
  double temperature = 0;  // 0: the most likely token
  size_t top_k = 0;        // 0: all tokens
};
struct ExportCommand {
  std::string file, onnx;
  std::string stage;                           // "": the default of the file's kind
  std::map<std::string, std::string> options;  // of the compiler
  bool json = false;
};
struct RefitCommand {
  std::string engine, output;
  std::vector<std::string> weights;
  bool partial = false, json = false;
};
struct SignCommand {
  std::string engine, key, output;  // no output: the engine itself
  bool json = false;
};
struct BenchCommand {
  RunCommand run;
  double seconds = 2;
  int warmup = 5;
  bool profile = false;  // time steps too
  size_t top = 20;       // number of steps to print
  std::string report;    // HTML file to write, with the times of steps; "": none
};
struct ProfileCommand {
  BenchCommand bench;
  std::string trace;  // file for Chrome trace events; "": none
};
struct InspectCommand {
  std::string file;
  bool json = false;
};
struct DiffCommand {
  std::string before, after;
  bool json = false;
};
// What a comparison accepts: relative * |reference| + absolute, of which a missing one is 0. The accuracy
// rule if both are missing.
struct Tolerance {
  std::optional<double> relative, absolute;
};
struct CompareCommand {
  RunCommand run;         // its engine is the result: a model, an engine, or a file of arrays
  std::string reference;  // likewise
  Tolerance tolerance;
  size_t top = 10;  // number of nodes to print
};
struct BisectCommand {
  std::string model, reference;                // no reference: the model without optional passes
  std::map<std::string, std::string> options;  // of the compiler
  RunCommand run;                              // its inputs and seed
  Tolerance tolerance;
};
struct CacheCommand {
  std::string folder;             // "": that of the environment
  std::string key;                // of `why`
  std::string file;               // of `bundle`, `unbundle` and `keygen`
  std::optional<uint64_t> bytes;  // of `gc`
  bool json = false;
};
struct OptCommand {
  std::string file, device;
  std::vector<std::string> passes, disabled;
  bool list = false, json = false;
};

void build(const BuildCommand& command);
void run(const RunCommand& command);
void generate(const GenerateCommand& command);
void export_onnx(const ExportCommand& command);
void refit(const RefitCommand& command);
void sign(const SignCommand& command);
void bench(const BenchCommand& command);
void profile(const ProfileCommand& command);
void inspect(const InspectCommand& command);
void verify(const InspectCommand& command);
void diff(const DiffCommand& command);
bool compare(const CompareCommand& command);  // whether the outputs are within the tolerance
bool bisect(const BisectCommand& command);    // whether the result of all passes is right
void cache_list(const CacheCommand& command);
void cache_stats(const CacheCommand& command);
void cache_why(const CacheCommand& command);
void cache_verify(const CacheCommand& command);
void cache_collect(const CacheCommand& command);
void cache_clear(const CacheCommand& command);
void cache_bundle(const CacheCommand& command);
void cache_unbundle(const CacheCommand& command);
void cache_keygen(const CacheCommand& command);
void optimize(const OptCommand& command);
void explain(const std::string& code, bool json);

}  // namespace ingot::cli
