// SPDX-License-Identifier: Apache-2.0
#include "tests/importers/aten/programs.h"

#include <algorithm>
#include "evaluate/evaluate.h"
#include "ir/text.h"

namespace ingot::core::aten::test {
namespace {

TensorView flat(const Tensor& tensor) {
  TensorView view = tensor.view();
  view.shape = {tensor.elements()};
  view.strides = {1};
  return view;
}
Tensor filled(DType dtype, std::vector<int64_t> shape, const std::vector<double>& numbers) {
  Tensor tensor = make_tensor(dtype, std::move(shape));
  for (size_t i = 0; i < numbers.size(); ++i)
    write_double(flat(tensor), std::vector<int64_t>{static_cast<int64_t>(i)}, numbers[i]);
  return tensor;
}
std::vector<double> numbers_of(const Tensor& tensor) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < tensor.elements(); ++i)
    numbers.push_back(read_double(flat(tensor), std::vector<int64_t>{i}));
  return numbers;
}
std::vector<int64_t> sizes_of(const Shape& shape, const SymbolValues& symbols) {
  std::vector<int64_t> sizes;
  for (const Dim& dim : shape) sizes.push_back(evaluate(dim, symbols));
  return sizes;
}
std::vector<int64_t> row_major(const Shape& shape) {
  std::vector<int64_t> sizes;
  for (const Dim& dim : shape) sizes.push_back(dim.constant().value_or(1));
  return row_major_strides(sizes);
}

}  // namespace

Argument list(const std::vector<int64_t>& numbers) {
  ArgumentList items;
  for (const int64_t number : numbers) items.push_back({number});
  return {items};
}
Argument values(const std::vector<ValueId>& ids) {
  ArgumentList items;
  for (const ValueId id : ids) items.push_back({id});
  return {items};
}

ValueId ProgramWriter::add(const std::string& name, Shape shape, DType dtype) {
  Value value{.name = name};
  value.tensor.dtype = dtype;
  const auto strides = row_major(shape);
  value.tensor.strides.assign(strides.begin(), strides.end());
  value.tensor.shape = std::move(shape);
  program.graph.values.push_back(std::move(value));
  return static_cast<ValueId>(program.graph.values.size() - 1);
}
ValueId ProgramWriter::input(const std::string& name, Shape shape, DType dtype) {
  const ValueId id = add(name, std::move(shape), dtype);
  program.graph.inputs.push_back({.value = id, .name = name});
  return id;
}
ValueId ProgramWriter::parameter(const std::string& name, const std::vector<double>& numbers) {
  const ValueId id = add(name, {static_cast<int64_t>(numbers.size())}, DType::kF32);
  const Tensor tensor = filled(DType::kF32, {static_cast<int64_t>(numbers.size())}, numbers);
  program.graph.inputs.push_back({.value = id,
                                  .kind = InputKind::kParameter,
                                  .name = name,
                                  .data = OwnedView{tensor.view(), tensor.data}});
  return id;
}
ValueId ProgramWriter::integer(const std::string& name, Dim size) {
  program.graph.values.push_back({.name = name, .kind = ValueKind::kSymInt, .integer = size});
  return static_cast<ValueId>(program.graph.values.size() - 1);
}
ValueId ProgramWriter::call(const std::string& target, std::vector<Argument> arguments, Shape shape,
                            DType dtype) {
  return call_for_several(target, std::move(arguments), {std::move(shape)}, dtype).front();
}
std::vector<ValueId> ProgramWriter::call_for_several(const std::string& target,
                                                     std::vector<Argument> arguments,
                                                     const std::vector<Shape>& shapes, DType dtype) {
  Node node{.target = target, .name = "node" + std::to_string(program.graph.nodes.size())};
  node.source = {
      .file = "model.py", .line = static_cast<int>(program.graph.nodes.size()) + 1, .function = "forward"};
  for (Argument& argument : arguments) node.arguments.push_back({"", std::move(argument)});
  std::vector<ValueId> ids;
  for (const Shape& shape : shapes) {
    ids.push_back(add(node.name, shape, dtype));
    node.outputs.emplace_back(ids.back());
  }
  program.graph.nodes.push_back(std::move(node));
  return ids;
}

std::vector<std::vector<double>> results(const Program& program,
                                         const std::vector<std::vector<double>>& numbers,
                                         const SymbolValues& symbols) {
  const Imported imported = import_program(program);
  TensorMap stored;
  for (const WeightSource& weight : imported.weights) stored[weight.name] = to_dense(weight.value.view);
  std::vector<Tensor> inputs;
  size_t next = 0;
  for (const Input& input : program.graph.inputs) {
    if (input.kind != InputKind::kUser) continue;
    const TensorMeta& meta = program.graph.values[input.value].tensor;
    Tensor tensor = filled(meta.dtype, sizes_of(meta.shape, symbols), numbers.at(next++));
    const auto is_state = [&](const StateSource& state) { return state.name == input.name; };
    if (std::ranges::any_of(imported.states, is_state)) {
      stored[input.name] = tensor;
    } else {
      inputs.push_back(tensor);
    }
  }
  const core::Evaluation evaluation = evaluate(imported.graph, inputs, stored);
  std::vector<std::vector<double>> result;
  for (const Tensor& output : evaluation.outputs) result.push_back(numbers_of(output));
  for (const auto& [name, value] : evaluation.updates) result.push_back(numbers_of(value));
  return result;
}

std::string imported_text(const Program& program) { return to_string(import_program(program).graph); }

}  // namespace ingot::core::aten::test
