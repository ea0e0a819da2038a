// SPDX-License-Identifier: Apache-2.0
// The command-line program. Exit status: 0 success, 1 rejected (one message on stderr), 2 wrong usage.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <span>

#include "cli/commands.h"
#include "cli/usage.h"
#include "ingot/build.h"

namespace {

using ingot::cli::BenchCommand;
using ingot::cli::BuildCommand;
using ingot::cli::CacheCommand;
using ingot::cli::CommandError;
using ingot::cli::DiffCommand;
using ingot::cli::InspectCommand;
using ingot::cli::OptCommand;
using ingot::cli::ProfileCommand;
using ingot::cli::RefitCommand;
using ingot::cli::RunCommand;

void add_build(CLI::App& app, BuildCommand& command) {
  CLI::App* build = app.add_subcommand("build", "Build an engine from a .pt2 file of torch.export");
  build->add_option("model", command.model, "model.pt2")->required();
  build->add_option("-o,--output", command.output,
                    "engine file to write (default: the model's name with .ingot)");
  build->add_flag("--json", command.json, "print a report as JSON");
  for (size_t i = 0; i < ingot_option_count(); ++i) {
    ingot_option_info info{};
    info.struct_size = sizeof(info);
    ingot::cli::check(ingot_option_describe(i, &info));
    std::string dashed = "--" + std::string(info.name);
    for (char& letter : dashed) letter = letter == '_' ? '-' : letter;
    const std::string name = info.name;
    build
        ->add_option_function<std::string>(
            dashed, [&command, name](const std::string& value) { command.options[name] = value; },
            info.summary)
        ->type_name(info.type)
        ->default_str(info.default_value);
  }
  build
      ->add_option("--metadata", command.metadata,
                   "KEY=VALUE to store in the engine, shown by `ingot inspect`; may be repeated")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        const size_t end = text.find('=');
        return end == 0 || end == std::string::npos ? "'" + text + "' is not KEY=VALUE" : std::string();
      });
  build->callback([&command] { ingot::cli::build(command); });
}

CLI::Option* add_weights(CLI::App& app, std::vector<std::string>& files, const char* summary) {
  return app.add_option("--weights", files, summary)->allow_extra_args(false);
}

void add_refit(CLI::App& app, RefitCommand& command) {
  CLI::App* refit = app.add_subcommand("refit", "Write an engine with new weights");
  refit->add_option("engine", command.engine, "engine file")->required();
  add_weights(*refit, command.weights, "a .safetensors or .pt2 file with new values; may be repeated")
      ->required();
  refit->add_option("-o,--output", command.output, "engine file to write")->required();
  refit->add_flag("--partial", command.partial, "keep the weights that the files lack");
  refit->add_flag("--json", command.json, "print JSON");
  refit->callback([&command] { ingot::cli::refit(command); });
}

void add_run_options(CLI::App& app, RunCommand& command) {
  app.add_option("engine", command.engine, "engine file")->required();
  app.add_option(
         "-i,--input", command.inputs,
         "NAME=x.npy, a .npz or .safetensors file with arrays named like the inputs, or x.npy by position")
      ->allow_extra_args(false);
  app.add_option("--shapes", command.shapes, "sizes of random inputs: name:1x128,...");
  app.add_option("--seed", command.seed, "seed of random inputs");
  app.add_option("--threads", command.threads, "0: all that the process may use");
  app.add_option("--verify", command.verify, "lazy or full")->check(CLI::IsMember({"lazy", "full"}));
  app.add_option("--trust", command.trust, "any, signed or none")
      ->check(CLI::IsMember({"any", "signed", "none"}));
  app.add_option("--memory", command.memory, "map or copy")->check(CLI::IsMember({"map", "copy"}));
  add_weights(app, command.weights, "take the weights from a .safetensors or .pt2 file; may be repeated");
  app.add_flag("--json", command.json, "print JSON");
}

std::string check_seconds(const std::string& text) {
  double seconds = 0;
  const bool good = CLI::detail::lexical_cast(text, seconds) && std::isfinite(seconds) && seconds > 0;
  return good ? "" : "'" + text + "' is not a time in seconds";
}

void add_run(CLI::App& app, RunCommand& command) {
  CLI::App* run = app.add_subcommand("run", "Run an engine once and write or describe its outputs");
  add_run_options(*run, command);
  run->add_option("-o,--output", command.output, "outputs.npz, or output.npy for one output");
  run->callback([&command] { ingot::cli::run(command); });
}

void add_timing_options(CLI::App& app, BenchCommand& command) {
  app.add_option("--seconds", command.seconds, "how long to measure")->check(&check_seconds);
  app.add_option("--warmup", command.warmup, "runs before the measurement")->check(CLI::Range(0, 1'000'000));
  app.add_option("--top", command.top, "number of slowest steps to print");
}

void add_bench(CLI::App& app, BenchCommand& command) {
  CLI::App* bench = app.add_subcommand("bench", "Time an engine");
  add_run_options(*bench, command.run);
  add_timing_options(*bench, command);
  bench->add_flag("--profile", command.profile, "time each step too, in separate runs");
  bench->callback([&command] { ingot::cli::bench(command); });
}

void add_profile(CLI::App& app, ProfileCommand& command) {
  CLI::App* profile = app.add_subcommand("profile", "Time each step of an engine");
  add_run_options(*profile, command.bench.run);
  add_timing_options(*profile, command.bench);
  profile->add_option("--trace", command.trace,
                      "write the last run for chrome://tracing or Perfetto: trace.json");
  profile->callback([&command] { ingot::cli::profile(command); });
}

CLI::App* add_file_command(CLI::App& app, const char* name, const char* summary, InspectCommand& command) {
  CLI::App* sub = app.add_subcommand(name, summary);
  sub->add_option("file", command.file, "engine file")->required();
  sub->add_flag("--json", command.json, "print JSON");
  return sub;
}

void add_diff(CLI::App& app, DiffCommand& command) {
  CLI::App* diff = app.add_subcommand("diff", "What distinguishes two engines");
  diff->add_option("old", command.before, "engine file")->required();
  diff->add_option("new", command.after, "engine file")->required();
  diff->add_flag("--json", command.json, "print JSON");
  diff->callback([&command] { ingot::cli::diff(command); });
}

void add_opt(CLI::App& app, OptCommand& command) {
  CLI::App* opt = app.add_subcommand("opt", "Run passes on the text form of a graph");
  opt->add_option("file", command.file, "graph.ir, or - for standard input");
  opt->add_option("-p,--pass", command.passes, "a pass to run; may be repeated (default: all)")
      ->allow_extra_args(false);
  opt->add_option("--device", command.device,
                  "whose passes: backend[:device]; without it only those of every target run by default");
  opt->add_flag("--list", command.list, "list the passes");
  opt->add_flag("--json", command.json, "print JSON");
  opt->callback([&command] { ingot::cli::optimize(command); });
}

void add_cache(CLI::App& app, CacheCommand& command) {
  CLI::App* cache = app.add_subcommand("cache", "What builds keep on disk");
  cache->require_subcommand(1);
  const auto add = [&](const char* name, const char* summary, void (*run)(const CacheCommand&)) {
    CLI::App* sub = cache->add_subcommand(name, summary);
    sub->add_option("--folder", command.folder, "default: INGOT_ENGINE_CACHE_DIR, or ~/.cache/ingot");
    sub->add_flag("--json", command.json, "print JSON");
    sub->callback([&command, run] { run(command); });
    return sub;
  };
  add("ls", "List the entries, the least recently used first", &ingot::cli::cache_list);
  add("stats", "How much there is", &ingot::cli::cache_stats);
  add("why", "What decides an entry", &ingot::cli::cache_why)
      ->add_option("key", command.key, "as `ingot cache ls` prints it, or its first digits")
      ->required();
  add("verify", "Check every byte, and remove damaged entries", &ingot::cli::cache_verify);
  add("gc", "Remove the least recently used entries", &ingot::cli::cache_collect)
      ->add_option("--size", command.bytes, "bytes that may stay")
      ->required();
  add("clear", "Remove all entries", &ingot::cli::cache_clear);
  add("bundle", "Write all entries to one file, for machines that build the same models",
      &ingot::cli::cache_bundle)
      ->add_option("file", command.file, "bundle to write")
      ->required();
  add("unbundle", "Check and add the entries of such a file", &ingot::cli::cache_unbundle)
      ->add_option("file", command.file, "bundle to read")
      ->required();
}

bool wants_json(std::span<char*> words) {
  return std::ranges::find(words, std::string_view("--json")) != words.end();
}

// Prints the error to stderr, and with --json also to stdout, for programs. Prints nothing if out of memory.
int refuse(const CommandError& error, std::span<char*> words) {
  const std::string json = wants_json(words) ? json_of(error) : "";
  std::cerr << "ingot: " << error.what() << "\n";
  std::cout << json;
  return error.status;
}

// Allocates nothing itself.
int refuse_without_memory(bool json) {
  std::fputs("ingot: [INGOT-D004] out of memory\n", stderr);
  if (json) {
    std::fputs("{\n  \"error\": {\n    \"code\": \"INGOT-D004\",\n", stdout);
    std::fputs("    \"message\": \"out of memory\",\n    \"status\": 1\n  }\n}\n", stdout);
  }
  std::fflush(stdout);
  return 1;
}

// Some destructors of third-party libraries allocate. Without memory they end up here; anything else here is
// a bug.
[[noreturn]] void end_without_memory() {
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
    std::_Exit(refuse_without_memory(false));
  } catch (...) {
  }
  std::abort();
}

int run_command(int argc, char** argv) {
  const std::span<char*> words(argv, static_cast<size_t>(argc));
  CLI::App app{"ingot: builds, runs and examines inference engines"};
  app.set_version_flag("--version", ingot_version());
  app.require_subcommand(1);
  BuildCommand build_command;
  RunCommand run_command;
  RefitCommand refit_command;
  BenchCommand bench_command;
  ProfileCommand profile_command;
  InspectCommand inspect_command, verify_command;
  DiffCommand diff_command;
  OptCommand opt_command;
  CacheCommand cache_command;
  std::string code;
  bool explain_json = false;
  try {
    add_build(app, build_command);
    add_run(app, run_command);
    add_refit(app, refit_command);
    add_bench(app, bench_command);
    add_profile(app, profile_command);
    add_cache(app, cache_command);
    add_file_command(app, "inspect", "Describe an engine, or print the program of a .pt2", inspect_command)
        ->callback([&] { ingot::cli::inspect(inspect_command); });
    add_file_command(app, "verify", "Check every byte of an engine", verify_command)->callback([&] {
      ingot::cli::verify(verify_command);
    });
    add_diff(app, diff_command);
    add_opt(app, opt_command);
    CLI::App* explain = app.add_subcommand("explain", "Explain an error code");
    explain->add_option("code", code, "INGOT-U001")->required();
    explain->add_flag("--json", explain_json, "print JSON");
    explain->callback([&] { ingot::cli::explain(code, explain_json); });
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return refuse({ingot::cli::describe_misuse(app, error), 2}, words);
  } catch (const CommandError& error) {
    return refuse(error, words);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return refuse({error.what()}, words);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(end_without_memory);
  try {
    return run_command(argc, argv);
  } catch (const std::bad_alloc&) {
    return refuse_without_memory(wants_json({argv, static_cast<size_t>(argc)}));
  }
}
