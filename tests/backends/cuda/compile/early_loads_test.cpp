// SPDX-License-Identifier: Apache-2.0
// What kernels load before they wait for the one before, in the machine code: an assembler may move loads
// behind the wait, and then nothing is wrong but the time.
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "backends/cuda/compile/backend.h"
#include "ir/text.h"
#include "ops/attention.h"
#include "ops/model_source.h"
#include "ops/ops.h"
#include "tests/backends/cuda/run_kernels.h"

namespace ingot::core::cuda {
namespace {

struct Instruction {  // of sm_90
  uint64_t low, high;
  uint64_t opcode() const { return low & 0xfff; }
  bool waits_for_previous() const { return opcode() == 0x82e; }
  bool loads_16_bytes() const { return opcode() == 0x981 && (high >> 9 & 7) == 6; }
};

std::vector<Instruction> instructions_of(const std::vector<std::byte>& code) {
  const auto read = [&](auto& into, size_t at) { std::memcpy(&into, code.data() + at, sizeof(into)); };
  Elf64_Ehdr header;
  read(header, 0);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  for (size_t i = 0; i < sections.size(); ++i) read(sections[i], header.e_shoff + i * sizeof(Elf64_Shdr));
  const auto is_code = [](const Elf64_Shdr& section) { return (section.sh_flags & SHF_EXECINSTR) != 0; };
  const auto section = std::ranges::find_if(sections, is_code);
  if (section == sections.end()) return {};
  std::vector<Instruction> instructions(section->sh_size / sizeof(Instruction));
  for (size_t i = 0; i < instructions.size(); ++i)
    read(instructions[i], section->sh_offset + i * sizeof(Instruction));
  return instructions;
}

// Loads between one wait and the next: those of the way that has most.
int64_t loads_before_a_wait(const LoweredKernel& kernel) {
  const std::vector<Instruction> all = instructions_of(kernel.compile().code);
  int64_t most = -1;  // there is no wait
  for (auto from = all.begin(); from != all.end();) {
    const auto wait = std::ranges::find_if(from, all.end(), &Instruction::waits_for_previous);
    if (wait == all.end()) break;
    most = std::max<int64_t>(most, std::ranges::count_if(from, wait, &Instruction::loads_16_bytes));
    from = wait + 1;
  }
  return most;
}

std::vector<LoweredStep> lower_last(const Graph& graph) {
  const Target target{.backend = "cuda", .device = "sm_90a"};
  return backend().lower(*graph.nodes().back(), graph.symbols, target);
}

Value* source(Graph& graph, const Op& op, Shape shape) {
  return graph.call(op, {}, ops::ModelSource{.dtype = DType::kF16, .shape = std::move(shape), .source = 0});
}

TEST(CudaEarlyLoads, ProductsOfARowHaveTheirWeights) {
  if (test::nvrtc() == nullptr) GTEST_SKIP() << "there is no NVRTC";
  Graph graph;
  Value* x = graph.add_input("x", {DType::kF16, {1, 768}, {}});
  graph.call(ops::linear, {x, source(graph, ops::weight, {768, 768}), nullptr});
  EXPECT_GE(loads_before_a_wait(*lower_last(graph)[0].kernel()), 768 * 2 / 512);
}

TEST(CudaEarlyLoads, TwinsHaveTheWeightsOfBoth) {
  if (test::nvrtc() == nullptr) GTEST_SKIP() << "there is no NVRTC";
  const Graph graph = parse_graph(
      "graph g(%x: bf16[1,2048]) {\n"
      " %w = weight() {name=\"w\", dtype=bf16, shape=[512, 2048]} : bf16[512,2048]\n"
      " %v = weight() {name=\"v\", dtype=bf16, shape=[512, 2048]} : bf16[512,2048]\n"
      " %y = fused(%x, %w, %v) {\n"
      "   graph region(%x: bf16[1,2048], %w: bf16[512,2048], %v: bf16[512,2048]) {\n"
      "     %a = linear(%x, %w) : bf16[1,512]\n"
      "     %s = silu(%a) : bf16[1,512]\n"
      "     %b = linear(%x, %v) : bf16[1,512]\n"
      "     %y = multiply(%s, %b) : bf16[1,512]\n"
      "     return %y\n"
      "   }\n"
      " } : bf16[1,512]\n"
      " return %y\n}",
      ops::find_op);
  EXPECT_GE(loads_before_a_wait(*lower_last(graph)[0].kernel()), 2 * 2048 * 2 / 512);
}

TEST(CudaEarlyLoads, AttentionThatComputesItsRowsHasItsKeysAndValues) {
  if (test::nvrtc() == nullptr) GTEST_SKIP() << "there is no NVRTC";
  const std::string region =
      "%q: bf16[1,8,1,64], %s: bf16[1,64], %k: bf16[1,8,1024,64], %v: bf16[1,8,1024,64], %p: i64[1], "
      "%a: bf16[1,8,1,64], %b: bf16[1,8,1,64]";
  const Graph graph = parse_graph(
      "graph g(%q: bf16[1,8,1,64], %s: bf16[1,64], %p: i64[1], %a: bf16[1,8,1,64], %b: bf16[1,8,1,64]) {\n"
      " %k = state() {name=\"k\", dtype=bf16, shape=[1, 8, 1024, 64]} : bf16[1,8,1024,64]\n"
      " %v = state() {name=\"v\", dtype=bf16, shape=[1, 8, 1024, 64]} : bf16[1,8,1024,64]\n"
      " %y = fused(%q, %s, %k, %v, %p, %a, %b) {\n   graph region(" +
          region +
          ") {\n"
          "     %t = multiply(%q, %s) : bf16[1,8,1,64]\n"
          "     %c = multiply(%a, %s) : bf16[1,8,1,64]\n"
          "     %y = cached_attention(%t, %k, %v, none, %p, %c, %b) : bf16[1,8,1,64]\n"
          "     return %y\n   }\n } : bf16[1,8,1,64]\n return %y\n}",
      ops::find_op);
  EXPECT_GE(loads_before_a_wait(*lower_last(graph)[0].kernel()), 8);
}

TEST(CudaEarlyLoads, AttentionToACacheHasItsKeysAndValues) {
  if (test::nvrtc() == nullptr) GTEST_SKIP() << "there is no NVRTC";
  const auto loads = [](bool is_state) {
    Graph graph;
    const TensorType row{DType::kF16, {1, 12, 1, 64}, {}}, cache{DType::kF16, {1, 12, 1024, 64}, {}};
    Value* q = graph.add_input("q", row);
    Value* k = is_state ? source(graph, ops::state, cache.shape) : graph.add_input("k", cache);
    Value* v = is_state ? source(graph, ops::state, cache.shape) : graph.add_input("v", cache);
    Value* positions = graph.add_input("positions", {DType::kI64, {1}, {}});
    Value *a = graph.add_input("a", row), *b = graph.add_input("b", row);
    graph.call(ops::cached_attention, {q, k, v, nullptr, positions, a, b}, ops::Attention{});
    return loads_before_a_wait(*lower_last(graph)[0].kernel());
  };
  EXPECT_GE(loads(true), 8) << "four keys and four values of each thread";
  EXPECT_EQ(loads(false), 0) << "what may not be complete yet";
}

}  // namespace
}  // namespace ingot::core::cuda
