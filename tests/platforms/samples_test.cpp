// SPDX-License-Identifier: Apache-2.0
// Each sample of each operator as an engine of its own: the file is written, opened and run, and the outputs
// are as the interpreter says. With INGOT_SAMPLES_FOLDER engines, inputs and outputs stay there, for other
// systems, which have to compute the same bits (run_cases.cpp).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "api/compiler/backends.h"
#include "compiler/accuracy.h"
#include "compiler/compile.h"
#include "engine/engine_file.h"
#include "ingot/context.h"
#include "ops/ops.h"
#include "ops/view.h"
#include "support/error.h"
#include "tests/ops/sample_graph.h"
#include "tests/platforms/case_file.h"

namespace ingot::core::test {
namespace {

class SampleEngines : public ::testing::TestWithParam<const Op*> {};

bool is_packed(const Value* value) { return !value->type.layout.is_row_major(); }

// Nothing where the record rejects the dtype, and for operands in layouts that callers do not have.
std::optional<SampleGraph> sample_of(const Op& op, const Sample& sample, DType dtype) {
  try {
    SampleGraph made = make_sample_graph(op, sample, dtype);
    if (std::ranges::any_of(made.graph.inputs(), is_packed)) return std::nullopt;
    for (Value*& output : made.graph.outputs) {
      if (is_packed(output)) output = made.graph.call(ops::relayout, {output}, ops::Relayout{});
    }
    return made;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// The engine's file; nothing if Ingot does not run it.
std::optional<std::vector<std::byte>> build(const Graph& graph) {
  CompileOptions options =
      parse_options({{"target", "windows-x86-64"}, {"threads", "1"}, {"engine_cache_dir", "off"}});
  options.cache.reuse = options.cache.keep = false;
  aten::Program program;
  program.origin = "a sample";
  const auto import = [&] {
    aten::Imported model{.graph = graph.clone()};
    model.input_slots.assign(graph.inputs().size(), TensorSlot{});
    model.output_slots.assign(graph.outputs.size(), TensorSlot{});
    return model;
  };
  try {
    const auto engine = compile_model(program, import, options, api::backends());
    std::vector<std::byte> file;
    write_engine(*engine, [&](Bytes part) { file.insert(file.end(), part.begin(), part.end()); });
    return file;
  } catch (const UnsupportedError&) {
    return std::nullopt;
  }
}

std::vector<ingot::Tensor> borrowed(const std::vector<Tensor>& tensors) {
  std::vector<ingot::Tensor> result;
  for (const Tensor& tensor : tensors)
    result.emplace_back(static_cast<void*>(tensor.data.get()), static_cast<ingot::DType>(tensor.dtype),
                        tensor.shape);
  return result;
}

void expect_near(const Tensor& expected, const ingot::Tensor& got) {
  ASSERT_EQ(expected.shape, got.shape());
  const std::vector<double> wanted = values_of(expected);
  Tensor dense{.data = {static_cast<std::byte*>(got.data()), [](std::byte*) {}},
               .dtype = expected.dtype,
               .shape = expected.shape};
  const std::vector<double> values = values_of(dense);
  double squares = 0;
  for (const double value : wanted) squares += std::isfinite(value) ? value * value : 0;
  const double rms = std::sqrt(squares / static_cast<double>(std::max<size_t>(wanted.size(), 1)));
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_TRUE(agree(wanted[i], values[i], allowed_difference(expected.dtype, wanted[i], rms)))
        << "element " << i << ": " << values[i] << ", not " << wanted[i];
}

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
  const auto file = build(made.graph);
  if (!file) return;
  const std::vector<ingot::Tensor> inputs = borrowed(made.operands);
  ingot::Context context(ingot::Engine::load(std::vector<std::byte>(*file)));
  const std::vector<ingot::Tensor> outputs = context.run(inputs);
  const std::vector<Tensor> expected = evaluate_sample(made);
  ASSERT_EQ(expected.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) expect_near(expected[i], outputs[i]);
  keep(name, *file, inputs, outputs);
}

TEST_P(SampleEngines, ComputeWhatTheInterpreterDoes) {
  int number = 0;
  for (const Sample& sample : GetParam()->samples()) {
    ++number;
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
      const auto made = sample_of(*GetParam(), sample, dtype);
      if (made)
        check(std::string(GetParam()->name) + "_" + std::to_string(number) + "_" + std::string(name(dtype)),
              *made);
    }
  }
}

std::vector<const Op*> ops_with_samples() {
  std::vector<const Op*> found;
  std::ranges::copy_if(ops::all_ops(), std::back_inserter(found),
                       [](const Op* op) { return op->samples != nullptr; });
  return found;
}

INSTANTIATE_TEST_SUITE_P(All, SampleEngines, ::testing::ValuesIn(ops_with_samples()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace ingot::core::test
