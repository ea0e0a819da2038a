// SPDX-License-Identifier: Apache-2.0
// Engines for GPUs through the public API: where there is a GPU they compute what the interpreter computes;
// elsewhere those with routines are built, so that NVRTC sees their kernels.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include <fmt/core.h>

#include "backends/cuda/compile/backend.h"
#include "backends/cuda/execute/execute.h"
#include "evaluate/evaluate.h"
#include "ir/text.h"
#include "tests/platforms/graph_engine.h"

namespace ingot::core::test {
namespace {

bool has_gpu() { return !cuda::executor().processor().empty(); }

// Another one than that of H100 and H200, which the tests run on.
std::string architecture() {
  const char* wanted = std::getenv("INGOT_TEST_ARCHITECTURE");
  return wanted != nullptr ? wanted : "sm_90a";
}

bool has_compiler() {
  try {
    return !cuda::backend().generator().empty();
  } catch (const DeviceError&) {
    return false;
  }
}

// Builds it for GPUs, and runs it where there is one.
void check_on_gpu(const std::string& name, const Graph& graph, const std::vector<Tensor>& operands,
                  const std::vector<Tensor>& expected) {
  SCOPED_TRACE(name);
  const auto file = build_engine(graph, {{"device", "cuda:" + architecture()}});
  if (!file || !has_gpu()) return;
  ingot::Context context(ingot::Engine::load(std::vector<std::byte>(*file)));
  for (int run = 0; run < 3; ++run) {  // enqueued, captured, replayed
    const std::vector<ingot::Tensor> outputs = context.run(borrowed(operands));
    ASSERT_EQ(expected.size(), outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) expect_near(expected[i], outputs[i]);
  }
}

class GpuSamples : public ::testing::TestWithParam<const Op*> {};

TEST_P(GpuSamples, ComputeWhatTheInterpreterDoes) {
  if (!has_compiler()) GTEST_SKIP() << "there is no NVRTC";
  if (!has_gpu() && GetParam()->routine.empty()) GTEST_SKIP() << "there is no GPU";
  int number = 0;
  for (const Sample& sample : GetParam()->samples()) {
    ++number;
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64}) {
      const auto made = callable_sample(*GetParam(), sample, dtype);
      if (made)
        check_on_gpu(std::to_string(number) + "_" + std::string(name(dtype)), made->graph, made->operands,
                     evaluate_sample(*made));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuSamples, ::testing::ValuesIn(ops_with_samples()),
                         [](const auto& info) { return std::string(info.param->name); });

// Of few kinds, so that many are equal; some are NaN, infinite, or zeros of either sign.
double tied_value(DType dtype, uint32_t random) {
  constexpr double kSpecial[] = {0.0, -0.0, 1.5, -2.25, 7, INFINITY, -INFINITY, NAN};
  const uint32_t kind = random % 64;
  return is_floating(dtype) && kind < 8 ? kSpecial[kind] : static_cast<double>(kind % 40);
}

Tensor tied(const TensorType& type, std::mt19937& random) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(*dim.constant());
  Tensor tensor = make_tensor(type.dtype, shape);
  TensorView flat = tensor.view();
  flat.shape = {tensor.elements()};
  flat.strides = {1};
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double value = tied_value(type.dtype, static_cast<uint32_t>(random()));
    if (is_floating(type.dtype))
      write_double(flat, std::vector{i}, value);
    else
      write_integer(flat, std::vector{i}, static_cast<int64_t>(value));
  }
  return tensor;
}

void expect_right(const std::string& text) {
  const Graph graph = parse_graph(text, ops::find_op);
  std::mt19937 random(3);
  std::vector<Tensor> operands;
  for (const Value* input : graph.inputs()) operands.push_back(tied(input->type, random));
  check_on_gpu(text, graph, operands, evaluate(graph, operands, {}).outputs);
}

std::string sorting(const std::string& call, const std::string& from, const std::string& to) {
  return fmt::format("graph g(%x: {}) {{\n %v, %i = {} : {}, i64{}\n return %v, %i\n}}", from, call, to,
                     to.substr(to.find('[')));
}

// Shorter and longer lines than fit in shared memory, along other axes too.
TEST(GpuRoutines, SortLinesOfAnyLength) {
  if (!has_gpu() || !has_compiler()) GTEST_SKIP() << "there is no GPU, or no NVRTC";
  for (const char* dtype : {"f32", "f16", "f64", "i64", "u8"}) {
    for (const char* shape : {"[1,1]", "[3,5000]", "[2,4096]", "[2,20001]", "[0,7]", "[7,0]"}) {
      for (const char* direction : {"true", "false"})
        expect_right(sorting(fmt::format("sort(%x) {{axis=1, descending={}}}", direction),
                             dtype + std::string(shape), dtype + std::string(shape)));
    }
  }
  expect_right(sorting("sort(%x) {axis=0, descending=true}", "f32[9000,3]", "f32[9000,3]"));
  expect_right(sorting("sort(%x) {axis=1, descending=false}", "bf16[2,300,5]", "bf16[2,300,5]"));
}

TEST(GpuRoutines, SelectFromLinesOfAnyLength) {
  if (!has_gpu() || !has_compiler()) GTEST_SKIP() << "there is no GPU, or no NVRTC";
  for (const int64_t count : {1, 50, 1000, 1500}) {
    for (const char* largest : {"true", "false"})
      expect_right(sorting(fmt::format("top_k(%x) {{axis=1, count={}, largest={}}}", count, largest),
                           "f32[3,30000]", fmt::format("f32[3,{}]", count)));
  }
  expect_right(sorting("top_k(%x) {axis=1, count=0, largest=true}", "f32[3,30]", "f32[3,0]"));
  expect_right(sorting("top_k(%x) {axis=0, count=40, largest=true}", "i64[5000,4]", "i64[40,4]"));
  expect_right(sorting("kth_value(%x) {axis=1, rank=700}", "f16[4,9000]", "f16[4,1]"));
  expect_right(sorting("kth_value(%x) {axis=1, rank=8000}", "f32[4,9000]", "f32[4,1]"));
  expect_right(sorting("median(%x) {axis=1}", "f32[4,9001]", "f32[4,1]"));
  expect_right(sorting("median(%x) {axis=0}", "i64[10,33]", "i64[1,33]"));
}

TEST(GpuRoutines, CombineWithRepeatedIndices) {
  if (!has_gpu() || !has_compiler()) GTEST_SKIP() << "there is no GPU, or no NVRTC";
  for (const char* dtype : {"f32", "f16", "bf16", "f64", "i64"}) {
    expect_right(
        fmt::format("graph g(%x: {0}[40,70], %i: i64[300,1], %s: {0}[300,66]) {{\n %y = "
                    "scatter_add(%x, %i, %s) {{axis=0}} : {0}[40,70]\n return %y\n}}",
                    dtype));
    for (const char* reduce : {"sum", "prod", "amax", "amin", "mean"}) {
      for (const char* self : {"true", "false"})
        expect_right(
            fmt::format("graph g(%x: {0}[3,40], %i: i64[2,90], %s: {0}[2,90]) {{\n %y = "
                        "scatter_reduce(%x, %i, %s) {{axis=1, reduce=\"{1}\", include_self={2}}} : "
                        "{0}[3,40]\n return %y\n}}",
                        dtype, reduce, self));
    }
  }
}

TEST(GpuRoutines, FindTrueElementsOfAnyNumber) {
  if (!has_gpu() || !has_compiler()) GTEST_SKIP() << "there is no GPU, or no NVRTC";
  for (const char* shape : {"[5]", "[100,333]", "[2,3,4000]", "[0]", "[9000]"}) {
    const auto rank = std::ranges::count(std::string_view(shape), ',') + 1;
    std::string axes;
    for (int64_t i = 0; i < rank; ++i) axes += (i == 0 ? "" : ", ") + std::to_string(i);
    expect_right(fmt::format(
        "graph g(%x: f32{0}) {{\n symbol N at most 40000\n %zero = full() {{value=9, shape=[1]}} : f32[1]\n"
        " %m = less(%zero, %x) : bool{0}\n %o = convert(%m) {{dtype=i64}} : i64{0}\n"
        " %n = sum(%o) {{axes=[{1}]}} : i64[]\n %c = bind_size(%n) {{size=N}} : i64[]\n"
        " %at = nonzero(%m, %c) {{size=N}} : i64[N,{2}]\n %y = negate(%at) : i64[N,{2}]\n return %y, %at\n}}",
        shape, axes, rank));
  }
}

// What has no kernel runs on the host, between kernels.
TEST(GpuRoutines, RunOnTheHostWithoutAKernel) {
  if (!has_compiler()) GTEST_SKIP() << "there is no NVRTC";
  expect_right(
      "graph g(%x: i64[4,40], %i: i64[4,40]) {\n %b = negate(%x) : i64[4,40]\n"
      " %r = scatter_reduce(%b, %i, %b) {axis=1, reduce=\"mean\", include_self=true} : i64[4,40]\n"
      " %y = negate(%r) : i64[4,40]\n return %y, %b\n}");
}

}  // namespace
}  // namespace ingot::core::test
