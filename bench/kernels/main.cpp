// SPDX-License-Identifier: Apache-2.0
// Our contraction kernels against the machine's roof: `kernels [--threads N] [--level x86-64-v4] [--rounds N]
// [WORD]` runs the cases whose name holds WORD. Probe and kernel alternate; the best of each counts.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "bench/kernels/cases.h"
#include "bench/kernels/kernel_run.h"
#include "support/machine_probes.h"

namespace ingot::bench {
namespace {

struct Options {
  int threads = 1;
  int rounds = 30;
  core::CpuFeatures features = core::host_cpu_features();
  std::string word;
};

double compute_roof(Team& team, const Options& options) {
  constexpr int64_t kRounds = 20000;
  double operations = core::run_multiply_add_probe(options.features, 1) * kRounds * options.threads;
  return operations / team.seconds([&](int) { core::run_multiply_add_probe(options.features, kRounds); }) /
         1e9;
}

// Reads memory at the rate that the kernel's weights are read at: the roof of matrix times vector.
double bytes_roof(Team& team, const std::byte* memory, size_t bytes, const Options& options) {
  const size_t part = bytes / static_cast<size_t>(options.threads);
  auto read = [&](int thread) {
    core::run_read_probe(options.features, {memory + part * static_cast<size_t>(thread), part});
  };
  return static_cast<double>(bytes) / team.seconds(read) / 1e9;
}

void run_case(const KernelCase& c, const Options& options, Team& team) {
  KernelRun run(c.plan, c.buffers, c.symbols, options.threads);
  AlignedMemory stream = allocate(static_cast<size_t>(c.streamed_bytes));
  double best = 1e9, roof = 0, bytes = 0;
  for (int round = 0; round < options.rounds; ++round) {
    roof = std::max(roof, compute_roof(team, options));
    if (c.streamed_bytes > 0) {
      bytes = std::max(bytes, bytes_roof(team, stream.get(), static_cast<size_t>(c.streamed_bytes), options));
    }
    best = std::min(best, team.seconds([&](int thread) { run.run_part(thread); }));
  }
  double rate = c.operations / best / 1e9;
  fmt::print("{:<34} {:9.3f} ms {:8.1f} GFLOP/s  {:5.1f} % of {:.1f}", c.name, best * 1e3, rate,
             100 * rate / roof, roof);
  if (c.streamed_bytes > 0) {
    double speed = static_cast<double>(c.streamed_bytes) / best / 1e9;
    fmt::print("  {:6.1f} GB/s {:5.1f} % of {:.1f}", speed, 100 * speed / bytes, bytes);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    std::string_view word = arguments[i];
    if (word == "--threads" && i + 1 < count)
      options.threads = std::atoi(arguments[++i]);
    else if (word == "--rounds" && i + 1 < count)
      options.rounds = std::atoi(arguments[++i]);
    else if (word == "--level" && i + 1 < count)
      options.features = core::parse_cpu_features(arguments[++i]);
    else
      options.word = word;
  }
  return options;
}

}  // namespace
}  // namespace ingot::bench

int main(int count, char** arguments) {
  using namespace ingot::bench;
  const Options options = parse(count, arguments);
  Team team(options.threads);
  ingot::core::Target target;
  target.device = to_string(options.features);
  bool found = false;
  for (const KernelCase& c : kernel_cases(target)) {
    if (c.name.find(options.word) == std::string::npos) continue;
    run_case(c, options, team);
    found = true;
  }
  if (!found) fmt::print(stderr, "no case of bench/kernels/cases.cpp has '{}' in its name\n", options.word);
  return found ? 0 : 1;
}
