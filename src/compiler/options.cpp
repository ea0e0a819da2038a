// SPDX-License-Identifier: Apache-2.0
#include "compiler/options.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "compiler/option_values.h"
#include "compiler/shapes.h"
#include "compiler/target_options.h"
#include "support/error.h"
#include "support/text.h"
#include "support/thread_pool.h"

namespace ingot::core {
namespace {

struct Row {
  OptionInfo info;
  void (*set)(CompileOptions& options, std::string_view name, std::string_view value);
};
using View = std::string_view;

// In the order of --help; each row's summary is its documentation.
constexpr std::array kRows = {
    Row{{"backend", "name", "cpu", "where the engine runs: cpu or cuda"},
        [](CompileOptions& o, View, View value) { o.target.backend = value; }},
    Row{{"backend_of", "pattern=backend,...", "",
         "which backend runs some nodes of an engine for a device: patterns of names or operators, with * "
         "and ?, and cpu or the device's backend: \"softmax=cpu,decoder*=cuda\"; the first that fits counts"},
        [](CompileOptions& o, View name, View value) { o.target.backend_of = parse_choices(name, value); }},
    Row{{"bisect_passes", "number[.number]", "-1",
         "run only the first so many optional passes, and of the next one so many rewrites, to find a faulty "
         "one; -1 runs all"},
        [](CompileOptions& o, View name, View value) { o.passes.bisect_limit = parse_limit(name, value); }},
    Row{{"cache", "address", "",
         "server whose entries builds share: redis://HOST:PORT/NAMESPACE, http://HOST:PORT/PATH; off: none "
         "(default: INGOT_CACHE)"},
        [](CompileOptions& o, View, View value) { o.cache.server = value; }},
    Row{{"cache_built_engines", "bool", "true", "keep what the build makes, for later builds"},
        [](CompileOptions& o, View name, View value) { o.cache.keep = parse_bool(name, value); }},
    Row{{"cache_ca_file", "file", "",
         "certificates of the authorities that an https server's has to come from (default: the system's)"},
        [](CompileOptions& o, View, View value) { o.cache.ca_file = value; }},
    Row{{"cache_deadline", "milliseconds", "10000", "how long a look-up or an upload may take"},
        [](CompileOptions& o, View name, View value) {
          o.cache.deadline_ms = parse_integer(name, value, 1, 3'600'000);
        }},
    Row{{"cache_read_only", "bool", "false", "add nothing to the server"},
        [](CompileOptions& o, View name, View value) { o.cache.read_only = parse_bool(name, value); }},
    Row{{"cache_signing_key", "file", "",
         "secret key that signs what is added to the server; without one it is only read (default: "
         "INGOT_CACHE_SIGNING_KEY)"},
        [](CompileOptions& o, View, View value) { o.cache.signing_key = value; }},
    Row{{"cache_write_policy", "policies", "through",
         "when entries go to disk, custom store and server: through (at once), back (in the background), "
         "read_only, none (nor are they read); for one of them disk:back, store:none, server:read_only ..."},
        [](CompileOptions& o, View name, View value) {
          if (!parse_write_policies(value, o.cache.writes)) refuse_option(name, value, kWritePolicyForm);
        }},
    Row{{"cpu", "levels", "native",
         "processor to build for, which runs what the device does not in an engine for a device: native, "
         "x86-64-v3, x86-64-v4, x86-64-v4+vnni+bf16 ..., aarch64; several, separated by commas: a machine "
         "runs "
         "the best that it has"},
        [](CompileOptions& o, View name, View value) { set_levels(o, name, value); }},
    Row{{"device", "backend[:device]", "cpu",
         "backend and device in one: cpu, cpu:x86-64-v3, cuda, cuda:sm_90a; which GPU of this machine: "
         "`gpu`"},
        [](CompileOptions& o, View name, View value) { set_device(o, name, value); }},
    Row{{"disable_passes", "entries", "",
         "what does not run, separated by commas: PASS, or PASS.RULE, or for some nodes PASS@NODES; rules "
         "and "
         "nodes are names with * and ?; `ingot opt --list` lists passes and rules"},
        [](CompileOptions& o, View, View value) { o.passes.disabled = parse_names(value); }},
    Row{{"enabled_precisions", "dtypes", "f32",
         "dtypes in which products, convolutions and attention of f32 may be computed where that is faster: "
         "f32, f16, bf16"},
        [](CompileOptions& o, View name, View value) {
          o.target.precisions = parse_precisions(name, value);
        }},
    Row{{"engine_cache_dir", "folder", "",
         "where builds keep what they make, for this user alone (mode 0700); off: nowhere (default: "
         "INGOT_ENGINE_CACHE_DIR, or ~/.cache/ingot)"},
        [](CompileOptions& o, View, View value) { o.cache.folder = value; }},
    Row{{"engine_cache_size", "bytes", "5368709120",
         "how much engine_cache_dir may hold: the least recently used entries are removed"},
        [](CompileOptions& o, View name, View value) {
          o.cache.limit = parse_integer(name, value, 0, INT64_MAX);
        }},
    Row{{"gpu", "number", "0",
         "the GPU of this machine that an engine for GPUs runs on after the build, and that times its "
         "tactics"},
        [](CompileOptions& o, View name, View value) {
          o.gpu = static_cast<int>(parse_integer(name, value, 0, INT32_MAX));
        }},
    Row{{"immutable_weights", "bool", "false",
         "make the weights constants, which may be folded by value; the engine accepts no other weights"},
        [](CompileOptions& o, View name, View value) { o.immutable_weights = parse_bool(name, value); }},
    Row{{"keep_original_weights", "bool", "false",
         "ship the model's own weights and prepare them at load, for machines of another kind"},
        [](CompileOptions& o, View name, View value) { o.keep_original_weights = parse_bool(name, value); }},
    Row{{"keep_precision", "patterns", "",
         "nodes that enabled_precisions leaves as they are: names with * and ?, separated by commas"},
        [](CompileOptions& o, View, View value) { o.target.keep_precision = parse_names(value); }},
    Row{{"numerics", "strict|default|fast", "default",
         "strict: only sums are reordered; default: within the accuracy rule; fast: GPUs also round products "
         "of f32 to TF32, and may call cuDNN, which may lose infinities and NaN"},
        [](CompileOptions& o, View name, View value) {
          o.target.numerics = parse_numerics(name, value);
          o.passes.strict = o.target.numerics == Target::Numerics::kStrict;
        }},
    Row{{"optimization_level", "0..5", "3",
         "0: one kernel per operator; 1: simplify and fold; 2: fuse; 3: layouts and kernel templates that "
         "need them; 4: time the few best tactics of each kernel; 5: time many, until nothing gets faster"},
        [](CompileOptions& o, View name, View value) {
          o.target.level = o.passes.level = static_cast<int>(parse_integer(name, value, 0, 5));
        }},
    Row{{"random_seed", "seed", "",
         "draw random numbers in the engine, other ones in each run, beginning with this seed; without it "
         "torch draws them"},
        [](CompileOptions& o, View name, View value) {
          if (!value.empty()) o.random_seed = parse_integer(name, value, INT64_MIN, INT64_MAX);
        }},
    Row{{"rank", "any|rank", "",
         "of a program with collectives: the rank that traced it, which alone may run the engine, or any if "
         "nothing in it depends on the rank; GROUP:NUMBER,... if there are several groups"},
        [](CompileOptions& o, View name, View value) { o.rank = parse_ranks(name, value); }},
    Row{{"refit_identical_engine_weights", "bool", "true",
         "has no effect: an engine that was found always takes the weights of the model at hand"},
        [](CompileOptions&, View name, View value) { parse_bool(name, value); }},
    Row{{"reuse_cached_engines", "bool", "true", "use what earlier builds kept"},
        [](CompileOptions& o, View name, View value) { o.cache.reuse = parse_bool(name, value); }},
    Row{{"shapes", "name:dims,...", "",
         "sizes of inputs: ids:1x128, or ranges ids:1..16x1..8..256 (min..typical..max)"},
        [](CompileOptions& o, View, View value) { o.profiles = parse_shapes(value); }},
    Row{{"shards", "patterns", "",
         "weights of which each rank has a part, by the names of the model: \"*.up.weight:0/2\" is half of "
         "a tensor along axis 0, \"*.up.weight:0/3+3+2\" one of parts of these sizes, \"...@tp\" of group "
         "tp"},
        [](CompileOptions& o, View, View value) { o.shards = parse_names(value); }},
    Row{{"share_kernels", "bool", "true",
         "compile equal kernels of an engine once; false: to measure what that saves"},
        [](CompileOptions& o, View name, View value) { o.share_kernels = parse_bool(name, value); }},
    Row{{"stop_after", "name", "", "the last pass to run"},
        [](CompileOptions& o, View, View value) { o.passes.stop_after = value; }},
    Row{{"strict_cache", "bool", "false",
         "problems of caches are errors; otherwise they cost a compilation and a line of the log"},
        [](CompileOptions& o, View name, View value) { o.cache.strict = parse_bool(name, value); }},
    Row{{"strip_engine_weights", "bool", "false",
         "leave the weights out of the file: they are given when it is loaded"},
        [](CompileOptions& o, View name, View value) { o.strip_weights = parse_bool(name, value); }},
    Row{{"target", "platform", "",
         "linux-x86-64, windows-x86-64 (the engine runs on both) or linux-aarch64: "
         "the processor is x86-64-v3 or aarch64 unless `cpu` or `device` names another "
         "(default: this machine's)"},
        [](CompileOptions& o, View name, View value) { set_platform(o, name, value); }},
    Row{{"threads", "number", "0",
         "threads of the build; does not affect the engine; 0: all that the process may use"},
        [](CompileOptions& o, View name, View value) {
          const auto threads = static_cast<int>(parse_integer(name, value, 0, 1024));
          o.threads = threads > 0 ? threads : available_threads();
        }},
    Row{{"timing_cache_path", "file", "",
         "where levels 4 and 5 keep which tactics were the fastest, and find them (default: tactics.txt in "
         "engine_cache_dir)"},
        [](CompileOptions& o, View, View value) { o.tactic_file = value; }},
    Row{{"trusted_keys", "file", "",
         "public keys whose entries count, of those that the server has; without one it is not used "
         "(default: "
         "INGOT_TRUSTED_KEYS)"},
        [](CompileOptions& o, View, View value) { o.cache.trusted_keys = value; }},
    Row{{"verify_kernels", "bool", "false",
         "compare each kernel with its definition, if this machine can run it; a wrong one fails the build"},
        [](CompileOptions& o, View name, View value) { o.verify_kernels = parse_bool(name, value); }},
    Row{{"verify_passes", "bool", "true", "check the graph after every pass"},
        [](CompileOptions& o, View name, View value) { o.passes.verify = parse_bool(name, value); }},
    Row{{"weights_file", "files", "",
         "the .safetensors files with the model's weights, or the index of them: the engine holds their "
         "digests, and takes them from there when it is loaded"},
        [](CompileOptions& o, View, View value) { o.weights_files = parse_lines(value); }},
};

constexpr auto kInfos = [] {
  std::array<OptionInfo, kRows.size()> infos;
  for (size_t i = 0; i < infos.size(); ++i) infos[i] = kRows[i].info;
  return infos;
}();

// Those that need torch, or a process in which calls and builds take place: of ingot.compile and
// torch.compile.
constexpr std::array<std::string_view, 9> kOfPython = {
    "check_speed", "check_weights",      "fallback",       "min_block_size",    "require_full_compilation",
    "staged",      "staged_first_level", "staged_threads", "torch_executed_ops"};

const Row& find_row(std::string_view name) {
  const auto row = std::ranges::find(kRows, name, [](const Row& r) { return r.info.name; });
  if (row != kRows.end()) return *row;
  if (std::ranges::find(kOfPython, name) != kOfPython.end()) {
    throw UserError("INGOT-U001",
                    fmt::format("option \"{}\" is for modules of Python, not for engines", name),
                    "without torch everything runs in the engine: leave the option out, and use "
                    "optimization_level=5 for the fastest engine; or call ingot.compile in Python");
  }
  std::vector<std::string_view> names;
  for (const OptionInfo& info : kInfos) names.push_back(info.name);
  const std::string_view nearest = nearest_name(name, names);
  throw UserError("INGOT-U001", fmt::format("there is no option \"{}\"", name),
                  nearest.empty() ? "`ingot build --help` lists all options"
                                  : fmt::format("the nearest is \"{}\"", nearest));
}

}  // namespace

std::span<const OptionInfo> all_options() { return kInfos; }

CompileOptions parse_options(const std::map<std::string, std::string>& options) {
  CompileOptions parsed;
  parsed.threads = available_threads();
  for (const auto& [name, value] : options) find_row(name).set(parsed, name, value);
  check_levels(parsed);
  return parsed;
}

}  // namespace ingot::core
