// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/generate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>

#include "backends/cpu/compile/backend.h"
#include "backends/cpu/compile/emit_kernel.h"
#include "backends/cpu/compile/templates/target.h"
#include "support/error.h"
#include "tests/loops/kernels.h"
#include "tests/ops/sample_graph.h"

namespace ingot::core::cpu {
namespace {

TEST(Generate, ReturnsTheImageAndPassesExceptionsOn) {
  EXPECT_EQ(generate([] { return Image{.kernel = "k"}; }).kernel, "k");
  EXPECT_THROW(generate([]() -> Image { throw UserError("INGOT-U002", "no"); }), UserError);
}

// Instructions of AVX-512 without its registers: a target that no option names, and that LLVM cannot serve.
TEST(Generate, FatalErrorsOfLlvmAreErrors) {
  CpuFeatures impossible = parse_cpu_features("x86-64-v3");
  impossible.add(CpuFeature::kAvx512Vnni);
  const loops::Kernel kernel = loops::test::softmax_kernel(7, 33);
  for (int i = 0; i < 3; ++i) {
    try {
      generate([&] { return emit_kernel(prepare(kernel, impossible)); });
      FAIL() << "there is code for " << to_string(impossible);
    } catch (const InternalError& error) {
      EXPECT_NE(std::string(error.what()).find("Cannot select"), std::string::npos) << error.what();
    }
    EXPECT_FALSE(
        generate([&] { return emit_kernel(prepare(kernel, parse_cpu_features("x86-64-v3"))); }).code.empty());
  }
}

// If LLVM, or its input streams, run out of memory, nothing unwinds: the thread sleeps, and others continue.
TEST(Generate, WantOfMemoryIsAnException) {
  const loops::Kernel kernel = loops::test::softmax_kernel(7, 33);
  const auto make = [&] { return emit_kernel(prepare(kernel, parse_cpu_features("x86-64-v3"))); };
  generate(make);
  bool unwound = false;
  const auto fail = [&]() -> Image {
    try {
      const volatile size_t too_much = PTRDIFF_MAX;
      ::operator delete(::operator new(too_much));
    } catch (...) {
      unwound = true;
      throw;
    }
    return {};
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(generate(fail), std::bad_alloc);
    EXPECT_FALSE(unwound);
    EXPECT_FALSE(generate(make).code.empty());
  }
  EXPECT_THROW(fail(), std::bad_alloc);  // elsewhere it is as everywhere
}

// Every text of a base and extensions that parse_cpu_features accepts.
std::vector<std::string> feature_texts() {
  const char* const extensions[] = {"vnni", "bf16", "fp16", "vbmi", "amx-tile", "amx-bf16", "amx-int8"};
  std::vector<std::string> texts;
  for (const char* base : {"x86-64", "x86-64-v3", "x86-64-v4", "aarch64"}) {
    for (unsigned set = 0; set < 128; ++set) {
      std::string text = base;
      for (unsigned i = 0; i < 7; ++i) text += set >> i & 1 ? std::string("+") + extensions[i] : "";
      try {
        parse_cpu_features(text);
        texts.push_back(text);
      } catch (const UserError&) {
      }
    }
  }
  return texts;
}

// Each target that the option accepts, with kernels that use the special features of each dtype.
TEST(Generate, EveryTargetHasKernels) {
  const std::vector<loops::Kernel> kernels{
      loops::test::softmax_kernel(7, 33),
      loops::test::softmax_kernel(Dim::symbol("B"), Dim::symbol("C"), DType::kBF16),
      loops::test::function_kernel(loops::functions::tanh, DType::kF16, {Dim::symbol("N")}),
      loops::test::function_kernel(loops::functions::erf, DType::kF64, {100}),
      loops::test::function_kernel(loops::functions::exp, DType::kBF16, {64}),
      loops::test::unary_kernel(loops::Unary::kAbsolute, DType::kI8, {Dim::symbol("N")})};
  const auto linear = core::test::make_sample_node(ops::linear, ops::linear.samples()[0]);
  for (const std::string& text : feature_texts()) {
    const CpuFeatures features = parse_cpu_features(text);
    if (!features.has(CpuFeature::kX86V3)) continue;
    for (const loops::Kernel& kernel : kernels) {
      const Image image = generate([&] { return emit_kernel(prepare(kernel, features)); });
      EXPECT_EQ(image.target, "cpu:" + to_string(features)) << text;
    }
    for (const LoweredStep& step : backend().lower(*linear.node, linear.graph.symbols, {.device = text}))
      EXPECT_FALSE(step.kernel()->compile().code.empty()) << text;
  }
}

}  // namespace
}  // namespace ingot::core::cpu
