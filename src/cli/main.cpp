// SPDX-License-Identifier: Apache-2.0
// The command-line program. Exit status: 0 success, 1 rejected (one message on stderr), 2 wrong usage, 3 a
// comparison or a search that found a difference.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <span>

#include "cli/cache_options.h"
#include "cli/commands.h"
#include "cli/export_options.h"
#include "cli/generate_options.h"
#include "cli/shared_options.h"
#include "cli/standard_streams.h"
#include "cli/system.h"
#include "cli/timing_options.h"
#include "cli/usage.h"
#include "ingot/build.h"

namespace {

using ingot::cli::add_bench;
using ingot::cli::add_build_options;
using ingot::cli::add_cache;
using ingot::cli::add_engine;
using ingot::cli::add_export;
using ingot::cli::add_generate;
using ingot::cli::add_input_options;
using ingot::cli::add_inputs;
using ingot::cli::add_profile;
using ingot::cli::add_run_options;
using ingot::cli::add_top;
using ingot::cli::add_weights;
using ingot::cli::BenchCommand;
using ingot::cli::BisectCommand;
using ingot::cli::BuildCommand;
using ingot::cli::CacheCommand;
using ingot::cli::check_seconds;
using ingot::cli::CommandError;
using ingot::cli::CompareCommand;
using ingot::cli::DiffCommand;
using ingot::cli::ExportCommand;
using ingot::cli::GenerateCommand;
using ingot::cli::InspectCommand;
using ingot::cli::OptCommand;
using ingot::cli::ProfileCommand;
using ingot::cli::RefitCommand;
using ingot::cli::RunCommand;
using ingot::cli::SignCommand;

constexpr int kDiffers = 3;                 // exit status
constexpr int64_t kPatienceAtEnd = 30'000;  // milliseconds, with entries that are yet to be written

void add_build(CLI::App& app, BuildCommand& command) {
  CLI::App* build =
      app.add_subcommand("build", "Build an engine from a .pt2 file of torch.export, or from an ONNX model");
  build
      ->add_option("model", command.model,
                   "what torch.export.save wrote, or an ONNX model: model.pt2, model.onnx")
      ->type_name("FILE")
      ->required();
  build
      ->add_option("-o,--output", command.output,
                   "engine file to write (default: the model's name with .ingot)")
      ->type_name("FILE");
  build->add_flag("--json", command.json, "print a report as JSON");
  build->add_option("--report", command.report, "write a page about the build: report.html")
      ->type_name("FILE");
  add_build_options(*build, command.options);
  build
      ->add_option("--metadata", command.metadata,
                   "text to store in the engine, shown by `ingot inspect`; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        const size_t end = text.find('=');
        return end == 0 || end == std::string::npos ? "'" + text + "' is not KEY=VALUE" : std::string();
      });
  build->callback([&command] { ingot::cli::build(command); });
}

void add_refit(CLI::App& app, RefitCommand& command) {
  CLI::App* refit = app.add_subcommand("refit", "Write an engine with new weights");
  add_engine(*refit, "engine", command.engine);
  add_weights(*refit, command.weights, "a .safetensors or .pt2 file with new values; may be repeated")
      ->required();
  refit->add_option("-o,--output", command.output, "engine file to write")->type_name("FILE")->required();
  refit->add_flag("--partial", command.partial, "keep the weights that the files lack");
  refit->add_flag("--json", command.json, "print JSON");
  refit->callback([&command] { ingot::cli::refit(command); });
}

void add_sign(CLI::App& app, SignCommand& command) {
  CLI::App* sign = app.add_subcommand("sign", "Sign an engine, for those who load it with --trust signed");
  add_engine(*sign, "engine", command.engine);
  sign->add_option("--key", command.key, "file of the secret key, of `ingot cache keygen`")
      ->type_name("FILE")
      ->required();
  sign->add_option("-o,--output", command.output, "engine file to write (default: the engine itself)")
      ->type_name("FILE");
  sign->add_flag("--json", command.json, "print JSON");
  sign->callback([&command] { ingot::cli::sign(command); });
}

void add_run(CLI::App& app, RunCommand& command) {
  CLI::App* run = app.add_subcommand("run", "Run an engine once and write or describe its outputs");
  add_run_options(*run, command);
  run->add_option("-o,--output", command.output,
                  "outputs.npz, or output.npy for one output; without it each output is described in a line")
      ->type_name("FILE");
  CLI::Option* const ranks =
      run->add_option(
             "--ranks", command.ranks,
             "start so many processes, the ranks of an engine with collectives: {rank} in names of files is "
             "the rank; rank 0 prints")
          ->type_name("number")
          ->check(CLI::Range(1, 1024).description(""));
  run->add_option("--deadline", command.deadline, "how long ranks wait for each other")
      ->needs(ranks)
      ->type_name("seconds")
      ->check(&check_seconds)
      ->capture_default_str();
  run->callback([&command] { ingot::cli::run(command); });
}

CLI::App* add_file_command(CLI::App& app, const char* name, const char* summary, const char* file,
                           InspectCommand& command) {
  CLI::App* sub = app.add_subcommand(name, summary);
  sub->add_option("file", command.file, file)->type_name("FILE")->required();
  sub->add_flag("--json", command.json, "print JSON");
  return sub;
}

void add_diff(CLI::App& app, DiffCommand& command) {
  CLI::App* diff = app.add_subcommand("diff", "What distinguishes two engines");
  add_engine(*diff, "old", command.before);
  add_engine(*diff, "new", command.after);
  diff->add_flag("--json", command.json, "print JSON");
  diff->callback([&command] { ingot::cli::diff(command); });
}

void add_tolerance(CLI::App& app, ingot::cli::Tolerance& tolerance) {
  const auto check = [](const std::string& text) {
    double value = 0;
    const bool good = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value >= 0;
    return good ? "" : "'" + text + "' is not a tolerance: write 0 or more";
  };
  const auto add = [&](const char* name, std::optional<double>& value, const char* summary) {
    app.add_option(name, value, summary)->type_name("number")->check(check);
  };
  add("--rtol", tolerance.relative,
      "accept rtol * |reference| + atol, the other of them 0 (default: the accuracy rule)");
  add("--atol", tolerance.absolute, "see --rtol");
}

void add_compare(CLI::App& app, CompareCommand& command, int& status) {
  CLI::App* compare = app.add_subcommand("compare", "How far the outputs of an engine are from a reference");
  compare
      ->add_option(
          "reference", command.reference,
          "model.pt2 or model.onnx, which is built without optional passes; an engine; or .npz, .npy or "
          ".safetensors with its outputs")
      ->type_name("FILE")
      ->required();
  compare->add_option("result", command.run.engine, "what is compared with it: likewise")
      ->type_name("FILE")
      ->required();
  add_input_options(*compare, command.run);
  add_tolerance(*compare, command.tolerance);
  add_top(*compare, command.top, "nodes to print, those with the largest errors");
  compare->callback([&] { status = ingot::cli::compare(command) ? 0 : kDiffers; });
}

void add_bisect(CLI::App& app, BisectCommand& command, int& status) {
  CLI::App* bisect = app.add_subcommand("bisect", "Find the rewrite of a pass that makes a result wrong");
  bisect->add_option("model", command.model, "model.pt2 or model.onnx")->type_name("FILE")->required();
  bisect
      ->add_option("--reference", command.reference,
                   "what is right, as for `ingot compare` (default: the model without optional passes)")
      ->type_name("FILE");
  add_inputs(*bisect, command.run);
  add_tolerance(*bisect, command.tolerance);
  bisect->add_flag("--json", command.run.json, "print JSON");
  add_build_options(*bisect, command.options);
  bisect->callback([&] { status = ingot::cli::bisect(command) ? 0 : kDiffers; });
}

void add_opt(CLI::App& app, OptCommand& command) {
  CLI::App* opt = app.add_subcommand("opt", "Run passes on the text form of a graph");
  opt->add_option("file", command.file, "graph.ir, or - for standard input")->type_name("FILE");
  opt->add_option("-p,--pass", command.passes, "a pass to run; may be repeated (default: all)")
      ->type_name("name")
      ->allow_extra_args(false);
  opt->add_option("--disable-passes", command.disabled, "what does not run, as in ingot build")
      ->type_name("entries")
      ->delimiter(',')
      ->allow_extra_args(false);
  opt->add_option("--device", command.device,
                  "whose passes; without it only those of every target run by default")
      ->type_name("backend[:device]");
  opt->add_flag("--list", command.list, "list the passes and their rules");
  opt->add_flag("--json", command.json, "print JSON");
  opt->callback([&command] { ingot::cli::optimize(command); });
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
  CLI::App app{
      "Builds, runs and examines inference engines. `ingot COMMAND --help` lists a command's arguments",
      "ingot"};
  app.set_version_flag("--version", ingot_version());
  app.allow_windows_style_options(false);  // "/x" is a path everywhere
  app.require_subcommand(1);
  BuildCommand build_command;
  RunCommand run_command;
  GenerateCommand generate_command;
  RefitCommand refit_command;
  SignCommand sign_command;
  BenchCommand bench_command;
  ProfileCommand profile_command;
  InspectCommand inspect_command, verify_command;
  DiffCommand diff_command;
  ExportCommand export_command;
  OptCommand opt_command;
  CacheCommand cache_command;
  CompareCommand compare_command;
  BisectCommand bisect_command;
  int status = 0;
  std::string code;
  bool explain_json = false;
  try {
    add_build(app, build_command);
    add_run(app, run_command);
    add_generate(app, generate_command);
    add_refit(app, refit_command);
    add_sign(app, sign_command);
    add_bench(app, bench_command);
    add_profile(app, profile_command);
    add_cache(app, cache_command);
    add_file_command(app, "inspect", "Describe an engine, or print a model's program",
                     "engine file, model.pt2 or model.onnx", inspect_command)
        ->callback([&] { ingot::cli::inspect(inspect_command); });
    add_file_command(app, "verify", "Check every byte of an engine", "engine file", verify_command)
        ->callback([&] { ingot::cli::verify(verify_command); });
    add_diff(app, diff_command);
    add_export(app, export_command);
    add_compare(app, compare_command, status);
    add_bisect(app, bisect_command, status);
    add_opt(app, opt_command);
    CLI::App* explain = app.add_subcommand("explain", "Explain an error code");
    explain->add_option("code", code, "as errors print it: INGOT-U001, or U001")->type_name("")->required();
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
  return status;
}

// The exit status; an error that was reported stays the only one.
int finish_command(int status) {
  try {
    ingot::cli::finish_output();
  } catch (const CommandError& error) {
    if (status == 0 || status == kDiffers) return refuse(error, {});
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(end_without_memory);
  ingot::cli::own_standard_streams();
  argv = ingot::cli::own_arguments(argc, argv);
  try {
    const int status = finish_command(run_command(argc, argv));
    ingot_cache_wait(kPatienceAtEnd);
    return status;
  } catch (const std::bad_alloc&) {
    return refuse_without_memory(wants_json({argv, static_cast<size_t>(argc)}));
  }
}
