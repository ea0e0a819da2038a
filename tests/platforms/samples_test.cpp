// SPDX-License-Identifier: Apache-2.0
// Each sample of each operator as an engine of its own: the file is written, opened and run, and the outputs
// are as the interpreter says. With INGOT_SAMPLES_FOLDER engines, inputs and outputs stay there, for other
// systems (run_cases.cpp): the same engines, or with INGOT_SAMPLES_TARGET those of another platform.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/platforms/case_file.h"
#include "tests/platforms/graph_engine.h"

namespace ingot::core::test {
namespace {

class SampleEngines : public ::testing::TestWithParam<const Op*> {};

void keep(const std::string& name, const std::vector<std::byte>& file,
          const std::vector<ingot::Tensor>& inputs, const std::vector<ingot::Tensor>& outputs) {
  const char* const folder = std::getenv("INGOT_SAMPLES_FOLDER");
  if (folder == nullptr) return;
  const std::string path = std::string(folder) + "/" + name;
  std::ofstream(path + ".ingot", std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  write_case(path + ".case", inputs, outputs);
}

void check(const std::string& name, const SampleGraph& made) {
  SCOPED_TRACE(name);
  const auto file = build_engine(made.graph, {{"target", "windows-x86-64"}});
  if (!file) return;
  const std::vector<ingot::Tensor> inputs = borrowed(made.operands);
  ingot::Context context(ingot::Engine::load(std::vector<std::byte>(*file)));
  const std::vector<ingot::Tensor> outputs = context.run(inputs);
  const std::vector<Tensor> expected = evaluate_sample(made);
  ASSERT_EQ(expected.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) expect_near(expected[i], outputs[i]);
  const char* const target = std::getenv("INGOT_SAMPLES_TARGET");
  if (target == nullptr) return keep(name, *file, inputs, outputs);
  const auto other = build_engine(made.graph, {{"target", target}});
  EXPECT_TRUE(other.has_value()) << "it is built for x86-64 only";
  if (other) keep(name, *other, inputs, outputs);
}

TEST_P(SampleEngines, ComputeWhatTheInterpreterDoes) {
  if (!INGOT_HAS_LLVM) GTEST_SKIP() << "the CPU's compiler comes with LLVM";
  int number = 0;
  for (const Sample& sample : GetParam()->samples()) {
    ++number;
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
      const auto made = callable_sample(*GetParam(), sample, dtype);
      if (made)
        check(std::string(GetParam()->name) + "_" + std::to_string(number) + "_" + std::string(name(dtype)),
              *made);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SampleEngines, ::testing::ValuesIn(ops_with_samples()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace ingot::core::test
