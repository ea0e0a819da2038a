// SPDX-License-Identifier: Apache-2.0
#include "tests/backends/device/device_graphs.h"

#include "ir/text.h"
#include "ops/model_source.h"
#include "ops/ops.h"
#include "support/error.h"

namespace ingot::core::test {

Tensor floats(const std::vector<float>& values, std::vector<int64_t> shape) {
  Tensor tensor = make_tensor(DType::kF32, std::move(shape));
  std::memcpy(tensor.data.get(), values.data(), values.size() * sizeof(float));
  return tensor;
}
Tensor counted(std::vector<int64_t> shape, float first) {
  Tensor tensor = make_tensor(DType::kF32, std::move(shape));
  auto* const values = reinterpret_cast<float*>(tensor.data.get());
  for (int64_t i = 0; i < tensor.elements(); ++i) values[i] = first + 0.25F * static_cast<float>(i % 64);
  return tensor;
}
Tensor integers(const std::vector<int64_t>& values) {
  Tensor tensor = make_tensor(DType::kI64, {static_cast<int64_t>(values.size())});
  std::memcpy(tensor.data.get(), values.data(), values.size() * sizeof(int64_t));
  return tensor;
}

Graph parsed(std::string_view text) { return parse_graph(text, ops::find_op); }

aten::Imported model_with(std::string_view text, const TensorMap& values) {
  aten::Imported model{.graph = parsed(text)};
  for (const auto& node : model.graph.nodes()) {
    if (node->op != &ops::weight && node->op != &ops::state) continue;
    auto source = node->attributes<ops::ModelSource>();
    const Tensor& value = values.at(source.name);
    const bool is_state = node->op == &ops::state;
    source.source = static_cast<int64_t>(is_state ? model.states.size() : model.weights.size());
    node->values = to_values(source);
    if (is_state)
      model.states.push_back({.name = source.name, .initial = OwnedView{value.view(), value.data}});
    else
      model.weights.push_back({.name = source.name, .value = {value.view(), value.data}});
  }
  model.input_slots.assign(model.graph.inputs().size(), TensorSlot{});
  model.output_slots.assign(model.graph.outputs.size(), TensorSlot{});
  return model;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape && std::memcmp(a.data.get(), b.data.get(), a.bytes()) == 0;
}

std::string code_of_call(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return std::string(error.details().code);
  }
  return "";
}

}  // namespace ingot::core::test
