// SPDX-License-Identifier: Apache-2.0
// torch.associative_scan: a loop of log2(rows) iterations over whole tensors, whatever the number of rows is.
//
//   stride = 1
//   while stride < rows:        x[i] combines the `stride` rows up to i, or all of them
//     x[i] = i < stride ? x[i] : combine(x[i - stride], x[i])
//     stride = 2 * stride
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "importers/aten/control_operands.h"
#include "importers/aten/converters/answers.h"
#include "importers/aten/converters/promotion.h"
#include "importers/aten/importer.h"
#include "importers/aten/program/node_error.h"
#include "ops/axis.h"
#include "ops/generate.h"
#include "ops/ops.h"
#include "ops/reshape.h"

namespace ingot::core::aten {
namespace {

// The rows that an iteration combines with those `stride` further on.
struct EarlierRows {
  core::Value* position;  // clamped to 0
  core::Value* exists;    // bool[rows]
};

EarlierRows earlier_rows(core::Graph& body, core::Value* stride, const Dim& count) {
  core::Value* row = body.call(ops::iota, {}, ops::Iota{0, 1, count, DType::kI64});
  core::Value* position = body.call(ops::subtract, {row, stride});
  return {body.call(ops::maximum, {position, size_scalar(body, 0, DType::kI64)}),
          body.call(ops::less_equal, {stride, row})};
}

core::Value* combined_or_itself(core::Graph& body, core::Value* exists, core::Value* combined,
                                core::Value* x) {
  Shape shape(x->type.rank(), 1);
  shape[0] = x->type.shape[0];
  core::Value* mask = body.call(ops::reshape, {exists}, ops::NewShape{shape});
  return body.call(ops::select, {mask, combined, x});
}

// Computes of whole tensors what `single` computes of one row; nullopt if only elementwise nodes could.
std::optional<std::vector<core::Value*>> on_whole_tensors(core::Graph& body, const core::Graph& single,
                                                          std::span<core::Value* const> values) {
  std::map<const core::Value*, core::Value*> whole;
  for (size_t i = 0; i < values.size(); ++i) whole[single.inputs()[i]] = values[i];
  for (const auto& node : single.nodes()) {
    std::vector<core::Value*> operands;
    for (const core::Value* operand : node->operands) operands.push_back(whole.at(operand));
    if (!operands.empty() && !node->op->traits.has(Trait::kElementwise)) return std::nullopt;
    const core::Node* copy =
        operands.empty() ? body.add_copy(*node, {}) : body.add(*node->op, std::move(operands), node->values);
    for (size_t i = 0; i < node->results.size(); ++i) whole[node->results[i]] = copy->results[i];
  }
  std::vector<core::Value*> results;
  for (const core::Value* output : single.outputs) results.push_back(whole.at(output));
  return results;
}

TensorType row_type(TensorType type) {
  type.shape.erase(type.shape.begin());
  return type;
}

}  // namespace

// `values`: the earlier rows, the later ones, and what else the graph takes, in the order of `list`.
std::vector<core::Value*> Importer::combined_rows(const Node& node, core::Graph& body,
                                                  std::span<const Argument* const> list,
                                                  std::span<core::Value* const> values, size_t rows) {
  core::Graph single("combine");
  single.symbols = body.symbols;
  for (size_t i = 0; i < values.size(); ++i)
    single.add_input(values[i]->name, i < rows ? row_type(values[i]->type) : values[i]->type);
  Importer inner(*graphs_of(node)[0], single, &nested_checks_);
  bind_operands(node, inner, list, single.inputs());
  single.outputs = inner.results_of(node);
  if (2 * single.outputs.size() != rows) refuse_node(node, "its graph returns another number of values");
  for (size_t i = 0; i < single.outputs.size(); ++i) {
    if (single.outputs[i]->type != single.inputs()[i]->type)
      refuse_node(node, "its graph returns other types than it takes");
  }
  std::optional<std::vector<core::Value*>> results = on_whole_tensors(body, single, values);
  if (!results) refuse_node(node, "its graph is not pointwise");
  return *std::move(results);
}

void Importer::import_associative_scan(const Node& node) {
  const ControlArguments arguments = arguments_of(node);
  std::vector<const Argument*> list = pointers(list_of(arguments, 0));
  const auto scanned = static_cast<ptrdiff_t>(list.size());
  const bool are_tensors = std::ranges::all_of(list, [&](const Argument* each) { return is_tensor(*each); });
  if (arguments.graphs.size() != 1 || list.empty() || !are_tensors)
    refuse_node(node, "it has no graph, or no tensors");
  std::ranges::copy(pointers(list_of(arguments, 1)), std::back_inserter(list));
  if (std::ranges::any_of(list, [&](const Argument* each) { return is_complex_tensor(*each); }))
    refuse_node(node, "complex numbers");  // their parts are not elementwise
  std::vector<core::Value*> operands = tensors_of(list);
  const TensorType& type = operands[0]->type;
  const bool are_alike = std::all_of(operands.begin(), operands.begin() + scanned, [&](core::Value* x) {
    return x->type.rank() == type.rank() && x->type.rank() > 0 && x->type.shape[0] == type.shape[0];
  });
  if (!are_alike) refuse_node(node, "its tensors differ in rank or in the number of rows");
  const Dim count = type.shape[0];

  operands.insert(operands.begin() + scanned, size_scalar(graph_, 1, DType::kI64));  // the stride
  std::vector<core::Graph> graphs;
  core::Graph& body = graphs.emplace_back("body");
  body.symbols = graph_.symbols;
  body.add_input("iteration", {DType::kI64, {}, {}});
  const std::vector<core::Value*> inside =
      Operands(body, operands).with_weights(body, static_cast<size_t>(scanned) + 1);
  const std::span<core::Value* const> rows = std::span(inside).first(static_cast<size_t>(scanned));
  core::Value* stride = inside[static_cast<size_t>(scanned)];

  const EarlierRows earlier = earlier_rows(body, stride, count);
  std::vector<core::Value*> values;
  for (core::Value* x : rows) values.push_back(body.call(ops::take, {x, earlier.position}, ops::Axis{0}));
  values.insert(values.end(), rows.begin(), rows.end());
  values.insert(values.end(), inside.begin() + scanned + 1, inside.end());
  const std::vector<const Argument*> once = list;
  list.insert(list.begin(), once.begin(), once.begin() + scanned);
  std::vector<core::Value*> after = combined_rows(node, body, list, values, 2 * rows.size());
  for (size_t i = 0; i < rows.size(); ++i)
    after[i] = combined_or_itself(body, earlier.exists, after[i], rows[i]);
  after.push_back(body.call(ops::add, {stride, stride}));
  after.insert(after.begin(), body.call(ops::less, {after.back(), size_scalar(body, count, DType::kI64)}));
  finish_loop(node, compared(graph_, is_less(1, count)), std::move(operands), std::move(graphs),
              std::move(after));
}

}  // namespace ingot::core::aten
