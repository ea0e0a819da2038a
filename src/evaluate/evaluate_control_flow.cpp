// SPDX-License-Identifier: Apache-2.0
#include "evaluate/evaluate.h"

#include <algorithm>

#include "ir/control_flow.h"

namespace ingot::core {
namespace {

bool is_true(const Tensor& condition) { return read_integer(condition.view(), {}) != 0; }

Tensor iteration_number(int64_t iteration) {
  Tensor tensor = make_tensor(DType::kI64, {});
  write_integer(tensor.view(), {}, iteration);
  return tensor;
}

}  // namespace

std::vector<Tensor> evaluate_control_flow(const Node& node, std::span<const Tensor* const> operands,
                                          const TensorMap& weights, const SymbolValues& symbols) {
  std::vector<Tensor> values;
  for (const Tensor* operand : operands.subspan(1)) values.push_back(*operand);
  bool go_on = is_true(*operands[0]);
  if (!is_loop(node)) return evaluate_with(*node.graphs[go_on ? 0 : 1], values, weights, symbols).outputs;
  const auto carried = static_cast<ptrdiff_t>(carried_count(node));
  for (int64_t iteration = 0; go_on; ++iteration) {
    std::vector<Tensor> inputs = {iteration_number(iteration)};
    inputs.insert(inputs.end(), values.begin(), values.end());
    std::vector<Tensor> outputs = evaluate_with(*node.graphs[0], inputs, weights, symbols).outputs;
    go_on = is_true(outputs[0]);
    std::move(outputs.begin() + 1, outputs.end(), values.begin());
  }
  values.erase(values.begin() + carried, values.end());
  return values;
}

}  // namespace ingot::core
