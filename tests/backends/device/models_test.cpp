// SPDX-License-Identifier: Apache-2.0
// Exported models on the device, by every level, against the interpreter.
#include <gtest/gtest.h>

#include "compiler/accuracy.h"
#include "evaluate/evaluate.h"
#include "importers/aten/import.h"
#include "importers/pt2/read_pt2.h"
#include "support/error.h"
#include "tests/backends/device/device_run.h"
#include "tests/ops/sample_graph.h"

namespace ingot::core::test {
namespace {

Tensor argument_for(const TensorType& type, const SymbolValues& sizes) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(evaluate(dim, sizes));
  Tensor tensor = make_tensor(type.dtype, shape);
  const int64_t elements = tensor.elements();
  const TensorView flat{tensor.data.get(), type.dtype, {elements}, {1}};
  for (int64_t i = 0; i < elements; ++i) {
    if (is_floating(type.dtype))
      write_double(flat, {&i, 1}, 0.125 * static_cast<double>(i % 17) - 1);
    else
      write_integer(flat, {&i, 1}, i % 2);
  }
  return tensor;
}

TensorMap weights_of(const aten::Imported& model) {
  TensorMap values;
  for (const aten::WeightSource& weight : model.weights)
    values.emplace(weight.name, to_dense(weight.value.view));
  for (const aten::StateSource& state : model.states) {
    if (state.initial) values.emplace(state.name, to_dense(state.initial->view));
  }
  return values;
}

class DeviceModels : public ::testing::TestWithParam<std::string> {};

TEST_P(DeviceModels, GiveWhatTheInterpreterGives) {
  const auto file = MappedFile::open(std::string(INGOT_SOURCE_DIR "/tests/data/pt2/") + GetParam() + ".pt2");
  const aten::Imported model = aten::import_program(pt2::read_pt2(file));
  const SymbolValues sizes = typical_sizes(model.graph.symbols);
  std::vector<Tensor> inputs;
  for (const Value* input : model.graph.inputs()) inputs.push_back(argument_for(input->type, sizes));
  const Evaluation expected = evaluate(model.graph, inputs, weights_of(model));
  for (int level = 0; level <= 3; ++level) {
    Device device;
    Context context(device.build(model, level));
    const std::vector<Tensor> outputs = call_by_copies(device, context, inputs);
    for (size_t i = 0; i < expected.outputs.size(); ++i) {
      const std::vector<double> wanted = values_of(expected.outputs[i]), got = values_of(outputs[i]);
      ASSERT_EQ(wanted.size(), got.size());
      for (size_t k = 0; k < wanted.size(); ++k)
        ASSERT_TRUE(agree(wanted[k], got[k], allowed_difference(outputs[i].dtype, wanted[k], 1)))
            << "level " << level << ", output " << i << ": " << got[k] << ", not " << wanted[k];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Archives, DeviceModels,
                         ::testing::Values("arguments", "control", "dynamic", "image", "pair", "weights"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace ingot::core::test
