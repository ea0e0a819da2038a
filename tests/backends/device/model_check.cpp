// SPDX-License-Identifier: Apache-2.0
#include "tests/backends/device/model_check.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/core.h>

#include "compiler/accuracy.h"
#include "evaluate/evaluate.h"
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

TensorMap values_of_model(const aten::Imported& model) {
  TensorMap values;
  for (const aten::WeightSource& weight : model.weights)
    values.emplace(weight.name, to_dense(weight.value.view));
  for (const aten::StateSource& state : model.states) {
    if (state.initial) values.emplace(state.name, to_dense(state.initial->view));
  }
  return values;
}

double root_mean_square(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += std::isfinite(value) ? value * value : 0;
  return std::sqrt(squares / static_cast<double>(std::max<size_t>(values.size(), 1)));
}

std::string difference(const std::vector<Tensor>& expected, const std::vector<Tensor>& outputs) {
  if (expected.size() != outputs.size()) return "another number of outputs";
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::vector<double> wanted = values_of(expected[i]), got = values_of(outputs[i]);
    if (wanted.size() != got.size()) return fmt::format("output {} has another size", i);
    const double scale = std::max(1.0, root_mean_square(wanted));
    for (size_t k = 0; k < wanted.size(); ++k) {
      if (!agree(wanted[k], got[k], allowed_difference(outputs[i].dtype, wanted[k], scale)))
        return fmt::format("output {}, element {}: {}, not {}", i, k, got[k], wanted[k]);
    }
  }
  return "";
}

// "" if the device refuses the call too, for the same reason.
std::string difference(const UserError& expected, Device& device, Context& context,
                       const std::vector<Tensor>& inputs) {
  try {
    call_by_copies(device, context, inputs);
  } catch (const UserError& error) {
    return error.details().code == expected.details().code ? "" : error.what();
  }
  return fmt::format("it has results, but the interpreter has {}", expected.what());
}

// Updates `values`. Numbers that were made for the inputs need not meet a model's assertions.
std::string call_wrong(const aten::Imported& model, const std::vector<Tensor>& inputs, TensorMap& values,
                       Device& device, Context& context) {
  std::optional<Evaluation> expected;
  try {
    expected = evaluate(model.graph, inputs, values);
  } catch (const UserError& error) {
    return difference(error, device, context, inputs);
  }
  for (const auto& [name, value] : expected->updates) values.insert_or_assign(name, value);
  return difference(expected->outputs, call_by_copies(device, context, inputs));
}

}  // namespace

std::string check_on_device(const aten::Imported& model, int level) {
  const SymbolValues sizes = typical_sizes(model.graph.symbols);
  std::vector<Tensor> inputs;
  for (const Value* input : model.graph.inputs()) inputs.push_back(argument_for(input->type, sizes));
  TensorMap values = values_of_model(model);
  Device device;
  Context context(device.build(model, level));
  for (int call = 0; call < 3; ++call) {  // enqueued, captured, replayed
    const std::string wrong = call_wrong(model, inputs, values, device, context);
    if (!wrong.empty()) return fmt::format("level {}, call {}: {}", level, call, wrong);
  }
  return "";
}

}  // namespace ingot::core::test
