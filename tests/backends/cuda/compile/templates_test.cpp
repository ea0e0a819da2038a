// SPDX-License-Identifier: Apache-2.0
// Contractions and attention by tensor cores, through the backend and the executor: they compile for old and
// new GPUs, and where there is a GPU they compute what the interpreter computes.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "backends/cuda/compile/attention.h"
#include "backends/cuda/compile/backend.h"
#include "backends/cuda/compile/contraction_rules.h"
#include "backends/cuda/compile/depthwise.h"
#include "backends/cuda/compile/library_kernel.h"
#include "backends/cuda/execute/execute.h"
#include "backends/cuda/kernel_abi.h"
#include "engine/engine_data.h"
#include "ir/text.h"
#include "loops/interpreter.h"
#include "ops/attention.h"
#include "ops/normalization.h"
#include "ops/ops.h"
#include "runtime/run_call.h"
#include "tests/backends/cuda/compile/template_graphs.h"
#include "tests/backends/cuda/run_kernels.h"
#include "tests/support/long_mode.h"

namespace ingot::core::cuda {

void PrintTo(const Library* library, std::ostream* out) { *out << library->files.name; }

namespace {

using core::test::Storage;

Graph graph_of(const Template& test, std::string_view half) {
  std::string text = test.graph;
  for (size_t at; (at = text.find("HALF")) != std::string::npos;) text.replace(at, 4, half);
  Graph graph = parse_graph(text, ops::find_op);
  const Node& node = *graph.nodes().back();
  std::vector<Value*> values;
  std::ranges::copy_if(node.operands, std::back_inserter(values),
                       [](const Value* value) { return value != nullptr; });
  values.push_back(node.results[0]);
  for (size_t i = 0; i < test.layouts.size(); ++i)
    if (*test.layouts[i] != 0) values[i]->type.layout = parse_layout(test.layouts[i], values[i]->type.rank());
  return graph;
}

// The image at work, on storages that lie `shift` bytes beside an aligned address, and its status.
int64_t run(const LoweredStep& step, std::vector<Storage>& storages, const SymbolValues& symbols,
            int64_t shift) {
  EngineData data;
  data.images.push_back(step.kernel()->compile());
  const auto images = executor().load(data, nullptr);
  std::vector<HostBuffer> buffers;
  for (Storage& storage : storages) {
    storage.bytes.insert(storage.bytes.begin(), static_cast<size_t>(shift), std::byte{0});
    buffers.push_back({storage.bytes, Storage::kGuard + static_cast<size_t>(shift)});
  }
  const auto failure = run_call(executor(), *images, step.kernel()->launch, buffers, symbols, nullptr);
  for (Storage& storage : storages) storage.bytes.erase(storage.bytes.begin(), storage.bytes.begin() + shift);
  return failure ? failure->status : 0;
}

// The step itself, and with each of its other kernels, but for those that differ in when the next one starts.
std::vector<LoweredStep> with_each_kernel(LoweredStep step) {
  const auto cut = [](const LoweredKernel& kernel) {
    return kernel.tactic.substr(0, kernel.tactic.find(", next"));
  };
  std::set<std::string> cuts = {cut(*step.kernel())};
  std::vector<LoweredStep> steps;
  for (LoweredKernel& other : step.others) {
    if (cuts.insert(cut(other)).second) steps.push_back({.action = std::move(other)});
  }
  steps.push_back(std::move(step));
  return steps;
}

// Of each kind of kernel one: kinds differ in more than numbers.
std::vector<LoweredStep> with_each_kind(LoweredStep step) {
  std::set<std::string> kinds;
  std::vector<LoweredStep> steps;
  for (LoweredStep& other : with_each_kernel(std::move(step))) {
    std::string kind = other.kernel()->tactic;
    std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
    if (kinds.insert(kind).second) steps.push_back(std::move(other));
  }
  return steps;
}

// Each of `steps`, which compute `node`, against the interpreter; also where one block, or cluster, takes all
// of the work.
void compare(const Template& test, const Node& node, std::vector<LoweredStep> steps,
             const std::vector<Storage>& inputs, const core::test::Check& check) {
  const loops::Kernel kernel = node.op->lower(node);
  std::vector<Storage> expected = inputs;
  std::vector<TensorView> views;
  for (Storage& storage : expected) views.push_back(storage.view());
  const auto status = static_cast<int64_t>(interpret(kernel, views, test.symbols));
  const int64_t element = bit_width(node.operand_type(0).dtype) / 8;
  for (LoweredStep& step : steps) {
    for (const bool in_turn : {false, true}) {
      SCOPED_TRACE(step.kernel()->tactic + (in_turn ? " by one block" : ""));
      if (in_turn) step.kernel()->launch.sizes[kItems] = 1;
      std::vector<Storage> got = inputs;
      EXPECT_EQ(run(step, got, test.symbols, test.shift * element), status);
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(core::test::difference(expected[i], got[i], check), "") << kernel.buffers[i].name;
        EXPECT_TRUE(got[i].guards_hold()) << "a write beyond " << kernel.buffers[i].name;
      }
    }
  }
}

void compare(const Template& test, const Node& node, const SymbolTable& symbols, const Target& target,
             const std::vector<Storage>& inputs, const core::test::Check& check) {
  compare(test, node, with_each_kernel(std::move(backend().lower(node, symbols, target)[0])), inputs, check);
}

// Three places of each input become infinite or not a number; not of values that causal attention does not
// see, which the template skips and the interpreter multiplies by 0.
void poke_special_values(const Node& node, std::vector<Storage>& inputs) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kSpecial[] = {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()};
  const bool is_causal = node.op == &ops::attention && node.attributes<ops::Attention>().causal;
  for (size_t s = 0; s + 1 < inputs.size(); ++s) {
    if (is_causal && s == 2) continue;
    for (size_t i = 0; is_floating(inputs[s].dtype) && i < std::size(kSpecial); ++i) {
      const int64_t place =
          static_cast<int64_t>(s * 7 + i * 3 + 1) * inputs[s].elements / 31 % inputs[s].elements;
      write_double(inputs[s].view(), {&place, 1}, kSpecial[i]);
    }
  }
}

constexpr int kLevelOfAllTactics = 5;

// PTX for all later GPUs has no instructions of one architecture, for which their drivers would refuse it.
void expect_portable(const std::vector<std::byte>& code) {
  const std::string_view text(reinterpret_cast<const char*>(code.data()), code.size());
  EXPECT_NE(text.find(".target sm_90"), std::string_view::npos);
  for (const std::string_view word : {"sm_90a", "wgmma", "setmaxnreg"})
    EXPECT_EQ(text.find(word), std::string_view::npos) << word;
}

// Where there is no GPU: kernels of f16 for a new one, of each kind, and one kernel for each other dtype and
// target; of each kind for all in the long mode.
void compile_alone(const Node& node, const SymbolTable& symbols, std::string_view dtype) {
  const bool compiles_all = core::test::is_long_mode();
  for (const std::string_view device : {"sm_80", "sm_90a", "compute_90"}) {
    const bool is_known = dtype == "f32" && (device == "sm_90a" || !compiles_all);  // nearly that of sm_80
    if (is_known && device != "sm_80") continue;
    if (dtype == "bf16" && device != "sm_90a" && !compiles_all) continue;
    Target target{.backend = "cuda", .device = std::string(device)};
    const bool is_main = dtype == "f16" && device == "sm_90a";
    if (dtype == "f16" && (is_main || compiles_all)) target.level = kLevelOfAllTactics;
    for (LoweredStep& step : with_each_kind(std::move(backend().lower(node, symbols, target)[0]))) {
      const Image image = step.kernel()->compile();
      EXPECT_FALSE(image.code.empty()) << step.kernel()->tactic;
      if (device == "compute_90") expect_portable(image.code);
      if (!is_main && !compiles_all) break;
    }
  }
}

class CudaTemplates : public ::testing::TestWithParam<Template> {};

TEST_P(CudaTemplates, AreAsTheInterpreterSays) {
  if (test::nvrtc() == nullptr) GTEST_SKIP() << "there is no NVRTC";
  for (const char* dtype : {"f16", "bf16", "f32"}) {
    SCOPED_TRACE(dtype);
    const Graph graph = graph_of(GetParam(), dtype);
    const Node& node = *graph.nodes().back();
    const bool is_float = node.operand_type(0).dtype == DType::kF32;
    ASSERT_TRUE(is_tensor_core_contraction(node) || is_tensor_core_attention(node) || is_depthwise(node));
    Target target{.backend = "cuda"};
    if (test::gpu() == nullptr) {
      compile_alone(node, graph.symbols, dtype);
      continue;
    }
    target.device = test::gpu()->architecture();
    target.level = dtype == std::string_view("f16") ? kLevelOfAllTactics : Target{}.level;
    const core::test::Check check{.low = 0, .high = 1};
    std::vector<Storage> inputs =
        core::test::make_storages(node.op->lower(node), GetParam().symbols, check, {});
    compare(GetParam(), node, graph.symbols, target, inputs, check);
    if (!is_float) continue;  // weights of halves round to 0 beside infinities
    poke_special_values(node, inputs);
    compare(GetParam(), node, graph.symbols, target, inputs, check);
    target.numerics = Target::Numerics::kFast;
    inputs = core::test::make_storages(node.op->lower(node), GetParam().symbols, check, {});
    compare(GetParam(), node, graph.symbols, target, inputs, {.relative = 2e-3, .low = 0, .high = 1});
  }
}

class CudaLibraries : public ::testing::TestWithParam<std::tuple<Template, const Library*>> {};

TEST_P(CudaLibraries, AreAsTheInterpreterSays) {
  const auto& [graph_text, library] = GetParam();
  if (test::nvrtc() == nullptr || test::gpu() == nullptr) GTEST_SKIP() << "there is no GPU, or no NVRTC";
  if (library_version(*library) == 0) GTEST_SKIP() << "there is no " << library->files.name;
  for (const char* dtype : {"f16", "bf16", "f32"}) {
    SCOPED_TRACE(dtype);
    const Graph graph = graph_of(graph_text, dtype);
    const Node& node = *graph.nodes().back();
    const Target target{.backend = "cuda",
                        .device = test::gpu()->architecture(),
                        .level = kLevelOfAllTactics,
                        .numerics = Target::Numerics::kFast};  // what the library is offered only then too
    std::vector<LoweredStep> steps =
        with_each_kernel(std::move(backend().lower(node, graph.symbols, target)[0]));
    std::erase_if(steps, [&](const LoweredStep& step) {
      return !step.kernel()->tactic.starts_with(library->files.name);
    });
    if (steps.empty()) continue;
    core::test::Check check{.low = 0, .high = 1};
    if (node.operand_type(0).dtype == DType::kF32) check.relative = 2e-3;
    compare(graph_text, node, std::move(steps),
            core::test::make_storages(node.op->lower(node), graph_text.symbols, check, {}), check);
  }
}

// A product behind a norm of a row without any deviation: nothing is left but the bias, however large the
// row's mean.
TEST(CudaNormalized, ConstantRowsGiveTheBias) {
  if (test::gpu() == nullptr) GTEST_SKIP() << "there is no GPU";
  const Graph graph = parse_graph(
      "graph g(%x: f16[2,192], %w: f16[48,192], %b: f16[48], %s: f32[48]) {\n"
      " %y = normalized_linear(%x, %w, %b, %s) {epsilon=0.00001} : f16[2,48]\n return %y\n}",
      ops::find_op);
  const Node& node = *graph.nodes().back();
  std::vector<Storage> storages =
      core::test::make_storages(node.op->lower(node), {}, {.low = 0, .high = 1}, {});
  for (int64_t i = 0; i < storages[0].elements; ++i)
    write_double(storages[0].view(), {&i, 1}, i < 192 ? 1000 : 0.1);
  for (int64_t row = 0; row < storages[3].elements; ++row) {
    double sum = 0;
    for (int64_t d = row * 192; d < (row + 1) * 192; ++d) sum += read_double(storages[1].view(), {&d, 1});
    write_double(storages[3].view(), {&row, 1}, sum);
  }
  const Target target{.backend = "cuda", .device = test::gpu()->architecture()};
  EXPECT_EQ(run(backend().lower(node, graph.symbols, target)[0], storages, {}, 0), 0);
  for (int64_t i = 0; i < storages[4].elements; ++i) {
    const int64_t column = i % 48;
    EXPECT_NEAR(read_double(storages[4].view(), {&i, 1}), read_double(storages[2].view(), {&column, 1}), 1e-3)
        << i;
  }
}

// Scores that grow from key to key: from part to part sometimes by so much that results are scaled, sometimes
// not.
TEST(CudaAttention, OfGrowingScoresIsAsTheInterpreterSays) {
  if (test::nvrtc() == nullptr || test::gpu() == nullptr) GTEST_SKIP() << "there is no GPU, or no NVRTC";
  const Template growing{"growing",
                         "graph g(%q: HALF[2,70,16], %k: HALF[2,600,16], %v: HALF[2,600,16]) {\n"
                         " %y = attention(%q, %k, %v) {scale=2} : HALF[2,70,16]\n return %y\n}"};
  constexpr core::test::Check kCheck{.low = 0, .high = 1};
  for (const char* dtype : {"f16", "bf16"}) {
    SCOPED_TRACE(dtype);
    const Graph graph = graph_of(growing, dtype);
    const Node& node = *graph.nodes().back();
    std::vector<Storage> inputs = core::test::make_storages(node.op->lower(node), {}, kCheck, {});
    for (int64_t i = 0; i < inputs[1].elements; ++i) {
      const double growth = 1 + static_cast<double>(i / 16 % 600) / 150;
      write_double(inputs[1].view(), {&i, 1}, read_double(inputs[1].view(), {&i, 1}) * growth);
    }
    const Target target{
        .backend = "cuda", .device = test::gpu()->architecture(), .level = kLevelOfAllTactics};
    compare(growing, node, graph.symbols, target, inputs, kCheck);
  }
}

TEST(CudaAttention, WithoutQueriesOrHeadsIsLowered) {
  for (const char* shape : {"[1,0,1,64]", "[1,2,0,64]"}) {
    const bool has_heads = std::string_view(shape) == "[1,2,0,64]";
    const std::string keys = has_heads ? "[1,2,80,64]" : "[1,0,80,64]";
    const Graph graph =
        parse_graph(fmt::format("graph g(%q: f16{0}, %k: f16{1}, %v: f16{1}) {{\n"
                                " %y = attention(%q, %k, %v) {{scale=0.5}} : f16{0}\n return %y\n}}",
                                shape, keys),
                    ops::find_op);
    const Target target{.backend = "cuda", .device = "sm_90a"};
    EXPECT_EQ(backend().lower(*graph.nodes().back(), graph.symbols, target).size(), 1U) << shape;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaTemplates, ::testing::ValuesIn(templates().begin(), templates().end()),
                         [](const auto& info) { return std::string(info.param.name); });

std::string name_with_library(const ::testing::TestParamInfo<std::tuple<Template, const Library*>>& info) {
  return fmt::format("{}_by_{}", std::get<0>(info.param).name, std::get<1>(info.param)->files.name);
}
INSTANTIATE_TEST_SUITE_P(All, CudaLibraries,
                         ::testing::Combine(::testing::ValuesIn(templates().begin(), templates().end()),
                                            ::testing::ValuesIn(kLibraries)),
                         name_with_library);
INSTANTIATE_TEST_SUITE_P(Convolutions, CudaLibraries,
                         ::testing::Combine(::testing::ValuesIn(library_convolution_graphs().begin(),
                                                                library_convolution_graphs().end()),
                                            ::testing::Values(&kCudnn)),
                         name_with_library);

}  // namespace
}  // namespace ingot::core::cuda
