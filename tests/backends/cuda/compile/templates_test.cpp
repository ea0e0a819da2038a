// SPDX-License-Identifier: Apache-2.0
// Contractions and attention by tensor cores, through the backend and the executor: they compile for old and
// new GPUs, and where there is a GPU they compute what the interpreter computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "backends/cuda/compile/attention.h"
#include "backends/cuda/compile/backend.h"
#include "backends/cuda/compile/contraction_rules.h"
#include "backends/cuda/compile/depthwise.h"
#include "backends/cuda/execute/execute.h"
#include "backends/cuda/kernel_abi.h"
#include "engine/engine_data.h"
#include "ir/text.h"
#include "loops/interpreter.h"
#include "ops/attention.h"
#include "ops/normalization.h"
#include "ops/ops.h"
#include "runtime/run_call.h"
#include "tests/backends/cuda/run_kernels.h"

namespace ingot::core::cuda {
namespace {

using core::test::Storage;

struct Template {
  const char* name;
  const char* graph;  // with HALF for a dtype; its last node is the one that is tried
  SymbolValues symbols = {};
  int64_t shift = 0;                      // elements that operands lie beside an aligned address
  std::vector<const char*> layouts = {};  // of the operands, and then of the result; of the others row-major
};

void PrintTo(const Template& test, std::ostream* out) { *out << test.name; }

constexpr const char* kChannelsLast = "{0, 2, 3, 1}";
constexpr const char* kLinear =
    "graph g(%x: HALF[S,64], %w: HALF[48,64], %b: HALF[48]) {\n %y = linear(%x, %w, %b) : HALF[S,48]\n "
    "return %y\n}";
constexpr const char* kAttention =
    "graph g(%q: HALF[2,3,S,32], %k: HALF[2,3,T,32], %v: HALF[2,3,T,16]) {\n"
    " %y = attention(%q, %k, %v) {scale=0.3} : HALF[2,3,S,16]\n return %y\n}";

const Template kTemplates[] = {
    {"linear_one_row", kLinear, {{"S", 1}}},
    {"linear_few_rows", kLinear, {{"S", 13}}},
    {"linear_many_rows", kLinear, {{"S", 300}}},
    {"linear_unaligned", kLinear, {{"S", 33}}, 1},
    {"linear_deep",
     "graph g(%x: HALF[2,5,1000], %w: HALF[24,1000]) {\n %y = linear(%x, %w) : HALF[2,5,24]\n return %y\n}"},
    {"linear_of_groups",
     "graph g(%x: HALF[70,600], %w: HALF[104,600], %b: HALF[104]) {\n %y = linear(%x, %w, %b) : "
     "HALF[70,104]\n "
     "return %y\n}"},
    {"linear_of_groups_deep",
     "graph g(%x: HALF[65,6000], %w: HALF[40,6000]) {\n %y = linear(%x, %w) : HALF[65,40]\n return %y\n}"},
    {"linear_large",
     "graph g(%x: HALF[1500,72], %w: HALF[1200,72]) {\n %y = linear(%x, %w) : HALF[1500,1200]\n return "
     "%y\n}"},
    {"linear_of_a_row",
     "graph g(%x: HALF[1,776], %w: HALF[50,776], %b: HALF[50]) {\n %y = linear(%x, %w, %b) : HALF[1,50]\n "
     "return %y\n}"},
    {"linear_of_three_rows",
     "graph g(%x: HALF[3,5000], %w: HALF[37,5000]) {\n %y = linear(%x, %w) : HALF[3,37]\n return %y\n}"},
    {"linear_of_rows_unaligned",
     "graph g(%x: HALF[2,40], %w: HALF[5000,40]) {\n %y = linear(%x, %w) : HALF[2,5000]\n return %y\n}",
     {},
     1},
    {"normalized_row",
     "graph g(%x: HALF[1,192], %w: HALF[48,192], %b: HALF[48], %s: f32[48]) {\n"
     " %y = normalized_linear(%x, %w, %b, %s) {epsilon=0.00001} : HALF[1,48]\n return %y\n}"},
    {"normalized_rows_unaligned",
     "graph g(%x: HALF[4,40], %w: HALF[48,40], %s: f32[48]) {\n"
     " %y = normalized_linear(%x, %w, none, %s) {epsilon=0.00001} : HALF[4,48]\n return %y\n}",
     {},
     2},
    {"normalized_by_root_mean_square",
     "graph g(%x: HALF[3,1,1000], %w: HALF[37,1000]) {\n"
     " %y = normalized_linear(%x, %w) {epsilon=0.001} : HALF[3,1,37]\n return %y\n}"},
    {"matmul_rows_of_b",
     "graph g(%a: HALF[3,S,40], %b: HALF[3,40,24]) {\n %y = matmul(%a, %b) : HALF[3,S,24]\n return %y\n}",
     {{"S", 70}}},
    {"matmul_columns_of_b",
     "graph g(%a: HALF[3,S,40], %b: HALF[3,40,24]) {\n %y = matmul(%a, %b) : HALF[3,S,24]\n return "
     "%y\n}",
     {{"S", 70}},
     0,
     {"", "{0, 2, 1}", ""}},
    {"matmul_of_any_columns",
     "graph g(%a: HALF[2,1100,64], %b: HALF[2,64,T in 8..96]) {\n %y = matmul(%a, %b) : HALF[2,1100,T]\n "
     "return %y\n}",
     {{"T", 43}},
     0,
     {"", "{0, 2, 1}", ""}},
    {"matmul_of_many_rows",
     "graph g(%a: HALF[2,1090,72], %b: HALF[2,72,200]) {\n %y = matmul(%a, %b) : HALF[2,1090,200]\n "
     "return %y\n}",
     {},
     0,
     {"", "{0, 2, 1}", ""}},
    {"convolution_of_many_pixels",
     "graph g(%x: HALF[5,64,17,15], %w: HALF[24,64,3,1], %b: HALF[24]) {\n"
     " %y = convolution(%x, %w, %b) {stride=[1, 1], padding=[1, 0], dilation=[1, 1]} : HALF[5,24,17,15]\n"
     " return %y\n}",
     {},
     0,
     {kChannelsLast, kChannelsLast, "", kChannelsLast}},
    {"matmul_shared_b",
     "graph g(%a: HALF[2,3,17,16], %b: HALF[1,16,8]) {\n %y = matmul(%a, %b) : HALF[2,3,17,8]\n return "
     "%y\n}"},
    {"matmul_of_groups",
     "graph g(%a: HALF[2,3,S,136], %b: HALF[3,136,24]) {\n %y = matmul(%a, %b) : HALF[2,3,S,24]\n return "
     "%y\n}",
     {{"S", 70}},
     0,
     {"{0, 2, 1, 3}", "{0, 2, 1}", "{0, 2, 1, 3}"}},
    {"matmul_unaligned",
     "graph g(%a: HALF[33,16], %b: HALF[16,40]) {\n %y = matmul(%a, %b) : HALF[33,40]\n return %y\n}",
     {},
     3},
    {"convolution",
     "graph g(%x: HALF[N,16,9,7], %w: HALF[24,16,3,3], %b: HALF[24]) {\n"
     " %y = convolution(%x, %w, %b) {stride=[1, 1], padding=[1, 1], dilation=[1, 1]} : HALF[N,24,9,7]\n"
     " return %y\n}",
     {{"N", 2}},
     0,
     {kChannelsLast, kChannelsLast, "", kChannelsLast}},
    {"convolution_strided",
     "graph g(%x: HALF[2,64,11,13], %w: HALF[8,64,3,2]) {\n"
     " %y = convolution(%x, %w) {stride=[2, 3], padding=[2, 0], dilation=[2, 1]} : HALF[2,8,6,4]\n"
     " return %y\n}",
     {},
     0,
     {kChannelsLast, kChannelsLast, kChannelsLast}},
    {"convolution_of_images",
     "graph g(%x: HALF[N,64,7,9], %w: HALF[40,64,3,3], %b: HALF[40]) {\n"
     " %y = convolution(%x, %w, %b) {stride=[2, 1], padding=[1, 1], dilation=[1, 1]} : HALF[N,40,4,9]\n"
     " return %y\n}",
     {{"N", 5}},
     0,
     {kChannelsLast, kChannelsLast, "", kChannelsLast}},
    {"convolution_of_many_points",
     "graph g(%x: HALF[2,24,9,7], %w: HALF[16,24,1,1]) {\n"
     " %y = convolution(%x, %w) {stride=[1, 1], padding=[0, 0], dilation=[1, 1]} : HALF[2,16,9,7]\n"
     " return %y\n}",
     {},
     0,
     {kChannelsLast, kChannelsLast, kChannelsLast}},
    {"convolution_of_points",
     "graph g(%x: HALF[1,40,5,5], %w: HALF[16,40,1,1]) {\n"
     " %y = convolution(%x, %w) {stride=[1, 1], padding=[0, 0], dilation=[1, 1]} : HALF[1,16,5,5]\n"
     " return %y\n}",
     {},
     1,
     {kChannelsLast, kChannelsLast, kChannelsLast}},
    {"depthwise",
     "graph g(%x: HALF[N,24,9,7], %w: HALF[24,1,5,5], %b: HALF[24]) {\n"
     " %y = convolution(%x, %w, %b) {stride=[1, 1], padding=[2, 2], dilation=[1, 1], groups=24} : "
     "HALF[N,24,9,7]\n"
     " return %y\n}",
     {{"N", 2}},
     0,
     {kChannelsLast, "{1, 2, 3, 0}", "", kChannelsLast}},
    {"depthwise_of_many",
     "graph g(%x: HALF[1,64,50,50], %w: HALF[64,1,7,7]) {\n"
     " %y = convolution(%x, %w) {stride=[1, 1], padding=[3, 3], dilation=[1, 1], groups=64} : "
     "HALF[1,64,50,50]\n"
     " return %y\n}",
     {},
     1,
     {kChannelsLast, "{1, 2, 3, 0}", kChannelsLast}},
    {"depthwise_of_neighbours",
     "graph g(%x: HALF[1,512,64,67], %w: HALF[512,1,5,5], %b: HALF[512]) {\n"
     " %y = convolution(%x, %w, %b) {stride=[1, 1], padding=[2, 2], dilation=[1, 1], groups=512} : "
     "HALF[1,512,64,67]\n return %y\n}",
     {},
     0,
     {kChannelsLast, "{1, 2, 3, 0}", "", kChannelsLast}},
    {"depthwise_of_strided_neighbours",
     "graph g(%x: HALF[1,512,70,150], %w: HALF[512,1,5,5]) {\n"
     " %y = convolution(%x, %w) {stride=[2, 2], padding=[1, 3], dilation=[1, 2], groups=512} : "
     "HALF[1,512,34,74]\n return %y\n}",
     {},
     0,
     {kChannelsLast, "{1, 2, 3, 0}", kChannelsLast}},
    {"depthwise_strided",
     "graph g(%x: HALF[2,8,40,43], %w: HALF[8,1,5,6]) {\n"
     " %y = convolution(%x, %w) {stride=[2, 3], padding=[4, 6], dilation=[2, 3], groups=8} : "
     "HALF[2,8,20,14]\n"
     " return %y\n}",
     {},
     0,
     {kChannelsLast, "{1, 2, 3, 0}", kChannelsLast}},
    {"attention", kAttention, {{"S", 37}, {"T", 150}}},
    {"attention_of_one_key", kAttention, {{"S", 1}, {"T", 1}}},
    {"attention_unaligned", kAttention, {{"S", 20}, {"T", 70}}, 2},
    {"attention_of_a_cache",
     "graph g(%q: HALF[1,6,1,64], %k: HALF[1,2,1000,64], %v: HALF[1,2,1000,64], %m: bool[1,1,1,1000]) {\n"
     " %y = attention(%q, %k, %v, %m) {scale=0, grouped=true} : HALF[1,6,1,64]\n return %y\n}"},
    {"attention_of_a_cache_of_some",
     "graph g(%q: HALF[3,2,32], %k: HALF[3,T,32], %v: HALF[3,T,48]) {\n"
     " %y = attention(%q, %k, %v) {scale=0.5, causal=true} : HALF[3,2,48]\n return %y\n}",
     {{"T", 700}}},
    {"attention_in_the_past",
     "graph g(%q: HALF[2,S,64], %k: HALF[2,S,64], %v: HALF[2,S,64]) {\n"
     " %y = attention(%q, %k, %v) {scale=0, causal=true} : HALF[2,S,64]\n return %y\n}",
     {{"S", 130}}},
    {"attention_of_groups",
     "graph g(%q: HALF[1,6,9,16], %k: HALF[1,2,80,16], %v: HALF[1,2,80,16]) {\n"
     " %y = attention(%q, %k, %v) {scale=0, grouped=true} : HALF[1,6,9,16]\n return %y\n}",
     {},
     0,
     {"{0, 2, 1, 3}", "", "{0, 2, 1, 3}", "{0, 2, 1, 3}"}},
    {"attention_with_mask",
     "graph g(%q: HALF[2,4,70,16], %k: HALF[2,4,90,16], %v: HALF[2,4,90,16], %m: HALF[2,1,70,90]) {\n"
     " %y = attention(%q, %k, %v, %m) {scale=0.5} : HALF[2,4,70,16]\n return %y\n}"},
    {"attention_of_some",
     "graph g(%q: HALF[4,20,16], %k: HALF[4,90,16], %v: HALF[4,90,16], %m: bool[20,90]) {\n"
     " %y = attention(%q, %k, %v, %m) {scale=0.5, empty_is_nan=true} : HALF[4,20,16]\n return %y\n}"},
    {"attention_of_a_new_row",
     "graph g(%q: HALF[1,6,1,64], %k: HALF[1,2,1000,64], %v: HALF[1,2,1000,64], %m: bool[1,1000], %p: "
     "i64[1], "
     "%a: HALF[1,2,1,64], %b: HALF[1,2,1,64]) {\n"
     " %y = cached_attention(%q, %k, %v, %m, %p, %a, %b) {scale=0, grouped=true} : HALF[1,6,1,64]\n"
     " return %y\n}"},
    {"attention_of_new_rows",
     "graph g(%q: HALF[3,2,20,32], %k: HALF[3,2,T,32], %v: HALF[3,2,T,48], %p: i32[3], %a: HALF[3,2,3,32], "
     "%b: HALF[3,2,3,48]) {\n"
     " %y = cached_attention(%q, %k, %v, none, %p, %a, %b) {scale=0.5} : HALF[3,2,20,48]\n return %y\n}",
     {{"T", 300}}},
    {"attention_of_new_rows_unaligned",
     "graph g(%q: HALF[2,1,32], %k: HALF[2,T,32], %v: HALF[2,T,32], %p: i32[1], %a: HALF[2,1,32], "
     "%b: HALF[2,1,32]) {\n"
     " %y = cached_attention(%q, %k, %v, none, %p, %a, %b) {scale=0.5} : HALF[2,1,32]\n return %y\n}",
     {{"T", 140}},
     2},
    {"attention_of_many_rows",
     "graph g(%q: HALF[40,200,16], %k: HALF[40,90,16], %v: HALF[40,90,16]) {\n"
     " %y = attention(%q, %k, %v) {scale=0.5} : HALF[40,200,16]\n return %y\n}"},
};

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

// The template's kernels of `node` against the interpreter; also where one block, or cluster, takes all of
// the work.
void compare(const Template& test, const Node& node, const SymbolTable& symbols, const Target& target,
             const std::vector<Storage>& inputs, const core::test::Check& check) {
  const loops::Kernel kernel = node.op->lower(node);
  std::vector<Storage> expected = inputs;
  std::vector<TensorView> views;
  for (Storage& storage : expected) views.push_back(storage.view());
  const auto status = static_cast<int64_t>(interpret(kernel, views, test.symbols));
  const int64_t element = bit_width(node.operand_type(0).dtype) / 8;
  for (LoweredStep& step : with_each_kernel(std::move(backend().lower(node, symbols, target)[0]))) {
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
      for (const char* device : {"sm_80", "sm_90a"}) {
        target.device = device;
        if (is_float && device != std::string_view("sm_80")) continue;  // the same code
        target.level = dtype == std::string_view("f16") ? kLevelOfAllTactics : Target{}.level;
        for (LoweredStep& step : with_each_kind(std::move(backend().lower(node, graph.symbols, target)[0])))
          EXPECT_FALSE(step.kernel()->compile().code.empty()) << step.kernel()->tactic;
      }
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

INSTANTIATE_TEST_SUITE_P(All, CudaTemplates, ::testing::ValuesIn(kTemplates),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ingot::core::cuda
