// SPDX-License-Identifier: Apache-2.0
// torch.associative_scan: a loop of log2(rows) iterations over whole tensors, whatever the number of rows is.
//
//   stride = 1
//   while stride < rows:        x[i] combines the `stride` rows up to i, or all of them
//     x[i] = i < stride ? x[i] : combine(x[i - stride], x[i])
//     stride = 2 * stride
//
// The parts of complex tensors are scanned as two tensors of reals.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "importers/aten/control_operands.h"
#include "importers/aten/converters/answers.h"
#include "importers/aten/converters/parts.h"
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

std::set<const core::Value*> values_read_by_outputs(const core::Graph& graph) {
  std::set<const core::Value*> read(graph.outputs.begin(), graph.outputs.end());
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    const auto& results = (*node)->results;
    if (std::ranges::any_of(results, [&](const core::Value* each) { return read.contains(each); }))
      read.insert((*node)->operands.begin(), (*node)->operands.end());
  }
  return read;
}

// Computes of whole tensors what `single` computes of one row; nullopt if only elementwise nodes could.
std::optional<std::vector<core::Value*>> on_whole_tensors(core::Graph& body, const core::Graph& single,
                                                          std::span<core::Value* const> values) {
  std::map<const core::Value*, core::Value*> whole;
  for (size_t i = 0; i < values.size(); ++i) whole[single.inputs()[i]] = values[i];
  const std::set<const core::Value*> read = values_read_by_outputs(single);  // joins of complex parts are not
  for (const auto& node : single.nodes()) {
    if (std::ranges::none_of(node->results, [&](const core::Value* each) { return read.contains(each); }))
      continue;
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

// The parts of complex tensors in their place.
std::vector<core::Value*> in_parts(Call call, const std::vector<bool>& are_complex,
                                   std::span<core::Value* const> tensors) {
  std::vector<core::Value*> reals;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!are_complex[i]) {
      reals.push_back(tensors[i]);
      continue;
    }
    const Parts parts = parts_of(call, tensors[i]);
    reals.insert(reals.end(), {parts.re.value(), parts.im.value()});
  }
  return reals;
}
// The reverse.
std::vector<core::Value*> joined_tensors(Call call, const std::vector<bool>& are_complex,
                                         std::span<core::Value* const> reals) {
  std::vector<core::Value*> tensors;
  for (size_t next = 0; const bool is_complex : are_complex) {
    tensors.push_back(is_complex ? joined(call, reals[next], reals[next + 1]) : reals[next]);
    next += is_complex ? 2 : 1;
  }
  return tensors;
}

TensorType row_type(TensorType type) {
  type.shape.erase(type.shape.begin());
  return type;
}

}  // namespace

// Which of the tensors among operands are complex.
std::vector<bool> Importer::complex_ones(std::span<const Argument* const> operands) const {
  std::vector<bool> are_complex;
  for (const Argument* operand : operands)
    if (is_tensor(*operand)) are_complex.push_back(is_complex_tensor(*operand));
  return are_complex;
}

std::vector<core::Value*> Importer::real_tensors_of(const Node& node,
                                                    std::span<const Argument* const> operands) {
  return in_parts({*this, node}, complex_ones(operands), tensors_of(operands));
}

// `values`: the earlier rows, the later ones, and what else the graph takes, in the order of `list`.
std::vector<core::Value*> Importer::combined_rows(const Node& node, core::Graph& body,
                                                  std::span<const Argument* const> list,
                                                  std::span<core::Value* const> values, size_t rows) {
  core::Graph single("combine");
  single.symbols = body.symbols;
  for (size_t i = 0; i < values.size(); ++i)
    single.add_input(values[i]->name, i < rows ? row_type(values[i]->type) : values[i]->type);
  Importer inner(*graphs_of(node)[0], single, &nested_checks_);
  const std::vector<bool> are_complex = complex_ones(list);
  bind_operands(node, inner, list, joined_tensors({inner, node}, are_complex, single.inputs()));
  const std::vector<core::Value*> results = inner.results_of(node);
  std::vector<bool> are_complex_results;
  for (const Output& output : inner.source_.outputs)
    are_complex_results.push_back(inner.is_complex_tensor(output.value));
  const bool are_alike =
      are_complex_results.size() <= are_complex.size() &&
      std::equal(are_complex_results.begin(), are_complex_results.end(), are_complex.begin());
  single.outputs = in_parts({inner, node}, are_complex_results, results);
  if (2 * single.outputs.size() != rows) refuse_node(node, "its graph returns another number of values");
  for (size_t i = 0; i < single.outputs.size(); ++i) {
    if (!are_alike || single.outputs[i]->type != single.inputs()[i]->type)
      refuse_node(node, "its graph returns other types than it takes");
  }
  std::optional<std::vector<core::Value*>> whole = on_whole_tensors(body, single, values);
  if (!whole) refuse_node(node, "its graph is not pointwise");
  return *std::move(whole);
}

void Importer::import_associative_scan(const Node& node) {
  const ControlArguments arguments = arguments_of(node);
  std::vector<const Argument*> list = pointers(list_of(arguments, 0));
  const std::vector<const Argument*> scanned_list = list;
  const bool are_tensors = std::ranges::all_of(list, [&](const Argument* each) { return is_tensor(*each); });
  if (arguments.graphs.size() != 1 || list.empty() || !are_tensors)
    refuse_node(node, "it has no graph, or no tensors");
  std::ranges::copy(pointers(list_of(arguments, 1)), std::back_inserter(list));
  std::vector<core::Value*> operands = real_tensors_of(node, scanned_list);
  const auto scanned = static_cast<ptrdiff_t>(operands.size());
  std::ranges::copy(real_tensors_of(node, std::span(list).subspan(scanned_list.size())),
                    std::back_inserter(operands));
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
  list.insert(list.begin(), scanned_list.begin(), scanned_list.end());
  std::vector<core::Value*> after = combined_rows(node, body, list, values, 2 * rows.size());
  for (size_t i = 0; i < rows.size(); ++i)
    after[i] = combined_or_itself(body, earlier.exists, after[i], rows[i]);
  after.push_back(body.call(ops::add, {stride, stride}));
  after.insert(after.begin(), body.call(ops::less, {after.back(), size_scalar(body, count, DType::kI64)}));
  std::vector<core::Value*> results = loop_results(node, compared(graph_, is_less(1, count)),
                                                   std::move(operands), std::move(graphs), std::move(after));
  results.pop_back();  // the stride
  give_results(node, joined_tensors({*this, node}, complex_ones(scanned_list), results));
}

}  // namespace ingot::core::aten
