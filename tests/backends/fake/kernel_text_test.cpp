// SPDX-License-Identifier: Apache-2.0
// The kernels of all samples of all operators survive their text, and damaged texts are rejected.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "backends/fake/execute/parse_text.h"
#include "loops/expand_math.h"
#include "loops/interpreter.h"
#include "ops/ops.h"
#include "support/error.h"
#include "tests/ops/sample_graph.h"

namespace ingot::core::test {
namespace {

class KernelText : public ::testing::TestWithParam<const Op*> {};

// In the dtypes that the record takes.
std::vector<SampleGraph> samples_of(const Op& op) {
  std::vector<SampleGraph> made;
  for (const Sample& sample : op.samples()) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
      try {
        made.push_back(make_sample_graph(op, sample, dtype));
      } catch (const UserError&) {
      }
    }
  }
  return made;
}

loops::Kernel kernel_of(const SampleGraph& sample) {
  loops::Kernel kernel = sample.node->op->lower(*sample.node);
  for (const auto& [name, info] : sample.graph.symbols) kernel.symbols.emplace(name, info);
  return kernel;
}

std::vector<Tensor> buffers_for(const loops::Kernel& kernel, const SampleGraph& sample) {
  std::vector<Tensor> tensors = sample.operands;
  for (size_t i = tensors.size(); i < kernel.buffers.size(); ++i) {
    Tensor& tensor = tensors.emplace_back(Tensor{nullptr, kernel.buffers[i].type.dtype, {}});
    tensor = make_tensor(DType::kU8, {evaluate(storage_bytes(kernel.buffers[i].type), sample.symbols)});
  }
  for (Tensor& tensor : tensors) tensor = to_dense(tensor.view());
  return tensors;
}

std::vector<Tensor> results_of(const loops::Kernel& kernel, const SampleGraph& sample) {
  std::vector<Tensor> tensors = buffers_for(kernel, sample);
  std::vector<TensorView> views;
  for (const Tensor& tensor : tensors) views.push_back(tensor.view());
  loops::interpret(kernel, views, sample.symbols);
  return tensors;
}

TEST_P(KernelText, ReadsBackAsTheSameKernel) {
  for (const SampleGraph& sample : samples_of(*GetParam())) {
    const loops::Kernel kernel = kernel_of(sample);
    for (const loops::Kernel& each : {kernel, loops::expand_math(kernel)}) {
      const std::string text = to_string(each);
      EXPECT_EQ(to_string(loops::parse_kernel(text)), text);
    }
    const std::vector<Tensor> expected = results_of(kernel, sample);
    const std::vector<Tensor> got = results_of(loops::parse_kernel(to_string(kernel)), sample);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(std::memcmp(expected[i].data.get(), got[i].data.get(), expected[i].bytes()), 0)
          << to_string(kernel);
  }
}

std::string damaged(std::string text, std::minstd_rand& random) {
  constexpr std::string_view kCharacters = "()[]{}<>-+*/%$:.,= \n019axi";
  for (size_t count = 1 + random() % 3; count > 0; --count) {
    const size_t at = random() % text.size(), length = std::min<size_t>(1 + random() % 8, text.size() - at);
    switch (random() % 4) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(random() % text.size(), text.substr(at, length));
        break;
      case 2:
        text[at] = kCharacters[random() % kCharacters.size()];
        break;
      default:
        std::swap(text[at], text[random() % text.size()]);
    }
    if (text.empty()) return text;
  }
  return text;
}

// A damaged text is rejected with a position, or is another kernel, which verifies and survives its text.
TEST_P(KernelText, IsRejectedOrAKernelWhenDamaged) {
  std::minstd_rand random(7);
  const SampleGraph sample = make_sample_graph(*GetParam(), GetParam()->samples().front());
  const std::string text = to_string(kernel_of(sample));
  for (int i = 0; i < 200; ++i) {
    const std::string changed = damaged(text, random);
    try {
      const std::string printed = to_string(loops::parse_kernel(changed));
      EXPECT_EQ(to_string(loops::parse_kernel(printed)), printed) << changed;
    } catch (const UserError& error) {
      EXPECT_TRUE(std::isdigit(error.details().message[0])) << error.what() << "\n" << changed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, KernelText, ::testing::ValuesIn(lowered_ops()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace ingot::core::test
