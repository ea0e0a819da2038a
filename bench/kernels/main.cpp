// SPDX-License-Identifier: Apache-2.0
// Our contraction kernels against the machine's roof: `kernels [--threads N] [--level x86-64-v4] [--dtype
// bf16]
// [--rounds N] [WORD]` runs the cases whose name holds WORD. Probe and kernel alternate; the best of each
// counts.
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
  core::DType dtype = core::DType::kF32;  // of the operands
  std::string word;
};

// Of f32, or where the processor has matrix registers, of what they multiply.
double probe(const Options& options, int64_t rounds) {
  const double matrices =
      options.dtype == core::DType::kF32 ? 0 : core::run_matrix_probe(options.features, rounds);
  if (matrices > 0) return matrices * (options.dtype == core::DType::kU8 ? 2 : 1);
  return core::run_multiply_add_probe(options.features, rounds);
}

double compute_roof(Team& team, const Options& options) {
  constexpr int64_t kRounds = 20000;
  const double operations = probe(options, 1) * kRounds * options.threads;
  return operations / team.seconds([&](int) { probe(options, kRounds); }) / 1e9;
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
    else if (word == "--dtype" && i + 1 < count)
      options.dtype = *core::parse_dtype(arguments[++i]);
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
  if (!ingot::core::request_cpu_features(options.features))
    fmt::print(stderr, "the system refuses matrix registers to this process\n");
  Team team(options.threads);
  ingot::core::Target target;
  target.device = to_string(options.features);
  bool found = false;
  for (const KernelCase& c : kernel_cases(target, options.dtype)) {
    if (c.name.find(options.word) == std::string::npos) continue;
    run_case(c, options, team);
    found = true;
  }
  if (!found) fmt::print(stderr, "no case of bench/kernels/cases.cpp has '{}' in its name\n", options.word);
  return found ? 0 : 1;
}
