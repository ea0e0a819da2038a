// SPDX-License-Identifier: Apache-2.0
#include "cli/shared_options.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdint>

namespace ingot::cli {
namespace {

// One of `words`, which the help page lists in place of a type.
void add_choice(CLI::App& app, const char* name, std::string& choice, const std::vector<std::string>& words,
                const std::string& summary) {
  app.add_option(name, choice, summary)
      ->check(CLI::IsMember(words).description(""))
      ->type_name(CLI::detail::join(words, "|"))
      ->capture_default_str();
}

// CLI11 takes -1 and numbers that are too large for the largest.
std::string check_seed(const std::string& text) {
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  const bool is_seed = error == std::errc() && end == text.data() + text.size();
  return is_seed ? "" : fmt::format("'{}' is not an integer from 0 to {}", text, UINT64_MAX);
}

}  // namespace

CLI::Option* add_engine(CLI::App& app, const char* name, std::string& file) {
  return app.add_option(name, file, "engine file")->type_name("FILE")->required();
}

CLI::Option* add_weights(CLI::App& app, std::vector<std::string>& files, const char* summary) {
  return app.add_option("--weights", files, summary)->type_name("FILE")->allow_extra_args(false);
}

void add_seed(CLI::App& app, RunCommand& command, const char* summary) {
  app.add_option("--seed", command.seed, summary)
      ->type_name("number")
      ->check(&check_seed)
      ->capture_default_str();
}

void add_top(CLI::App& app, size_t& top, const char* summary) {
  app.add_option("--top", top, summary)
      ->type_name("number")
      ->check(CLI::Range(0, 1'000'000'000).description(""))
      ->capture_default_str();
}

void add_inputs(CLI::App& app, RunCommand& command) {
  app.add_option("-i,--input", command.inputs,
                 "NAME=x.npy, a .npz or .safetensors file with arrays named like the inputs, or x.npy by "
                 "position; may be repeated. Inputs that are not given are random")
      ->type_name("[NAME=]FILE")
      ->allow_extra_args(false);
  add_seed(app, command, "of random inputs");
}

void add_input_options(CLI::App& app, RunCommand& command) {
  add_inputs(app, command);
  app.add_option("--shapes", command.shapes, "sizes of random inputs: ids:1x128,mask:1x128")
      ->type_name("name:dims,...");
  add_load_options(app, command);
}

void add_load_options(CLI::App& app, RunCommand& command) {
  app.add_option("--threads", command.threads, "threads of a run; 0: all that the process may use")
      ->type_name("number")
      ->capture_default_str();
  add_choice(app, "--verify", command.verify, {"lazy", "full"},
             "check the weights before the first run, or every byte of the file first");
  add_choice(app, "--trust", command.trust, {"any", "signed", "none"},
             "engines to run: any; only those that a trusted key signed; only those without native code");
  app.add_option("--trusted-keys", command.trusted_keys,
                 "file with the public keys for --trust signed (default: INGOT_TRUSTED_KEYS)")
      ->type_name("FILE");
  add_choice(app, "--memory", command.memory, {"map", "copy"},
             "map the file, which nothing may change meanwhile, or read all of it first");
  add_weights(app, command.weights, "take the weights from a .safetensors or .pt2 file; may be repeated");
  app.add_option("--weight-budget", command.weight_budget,
                 "memory of a GPU for the weights: all, auto, 50%, 1.5GB; runs copy the others there")
      ->type_name("BUDGET");
  app.add_option(
         "--gpu", command.gpu,
         "the GPU that an engine for GPUs runs on: 0, 1 ... (default: 0; with --ranks, that of its rank)")
      ->type_name("number")
      ->check(CLI::Range(0, INT32_MAX).description(""));
  app.add_option("--cpu", command.cpu,
                 "the level that is used, of an engine with several: x86-64-v3 ... (default: the best that "
                 "this machine has)")
      ->type_name("LEVEL");
  app.add_flag("--no-cuda-graphs", command.without_graphs,
               "enqueue the kernels of an engine for GPUs one by one in each run");
  app.add_flag("--json", command.json, "print JSON");
}

void add_run_options(CLI::App& app, RunCommand& command) {
  add_engine(app, "engine", command.engine);
  add_input_options(app, command);
}

}  // namespace ingot::cli
