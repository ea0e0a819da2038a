// SPDX-License-Identifier: Apache-2.0
// torch.cond, while_loop, scan, map and associative_scan: calls whose arguments are graphs.
#include <algorithm>
#include <utility>

#include "importers/aten/control_operands.h"
#include "importers/aten/converters/answers.h"
#include "importers/aten/converters/promotion.h"
#include "importers/aten/importer.h"
#include "importers/aten/program/node_error.h"
#include "importers/aten/recorded.h"
#include "ir/bound_symbol.h"
#include "ir/control_flow.h"
#include "ops/axis.h"
#include "ops/bounds.h"
#include "ops/generate.h"
#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/size_condition.h"
#include "support/error.h"

namespace ingot::core::aten {
namespace {

core::Value* as_condition(core::Graph& graph, core::Value* value) {
  value = converted(graph, value, DType::kBool);
  return value->type.rank() == 0 ? value : graph.call(ops::reshape, {value}, ops::NewShape{});
}

}  // namespace

bool is_control_flow(const Node& node) {
  constexpr std::string_view kTargets[] = {"higher_order.cond", "higher_order.while_loop",
                                           "higher_order.scan", "higher_order.map_impl",
                                           "higher_order.associative_scan"};
  return std::ranges::find(kTargets, node.target) != std::end(kTargets);
}

std::vector<const Graph*> graphs_of(const Node& node) { return arguments_of(node).graphs; }

void Importer::import_control_flow(const Node& node) {
  try {
    if (node.target == "higher_order.cond")
      import_branch(node);
    else if (node.target == "higher_order.while_loop")
      import_loop(node);
    else if (node.target == "higher_order.associative_scan")
      import_associative_scan(node);
    else
      import_scan(node);
  } catch (const UserError& error) {
    refuse_node(node, error.details().message);
  } catch (const UnsupportedError& error) {  // torch can only run all of it
    if (error.details().node == node.name) throw;
    refuse_node(node, "in one of its graphs, " + error.details().message);
  }
}

// The graph's inputs: tensors become inputs of `into`, or weights and constants of its own; sizes keep their
// names.
void Importer::bind_operands(const Node& node, Importer& inner, std::span<const Argument* const> operands,
                             std::span<core::Value* const> values) {
  const std::vector<ValueId> inputs = inner.bind_constants(node);
  if (inputs.size() != operands.size()) refuse_node(node, "its graph does not match its operands");
  for (size_t i = 0, next = 0; i < inputs.size(); ++i) {
    if (inner.aliases().written.contains(inputs[i])) refuse_node(node, "its graph writes an operand");
    if (is_tensor(*operands[i])) {
      if (is_complex_tensor(*operands[i]) != is_complex(inner.value(inputs[i]).tensor.dtype))
        refuse_node(node, "its graph records a complex operand as a real one, or a real one as complex");
      inner.bind(inputs[i], values[next++]);
    } else if (const auto* number = std::get_if<int64_t>(&operands[i]->value)) {
      inner.bind(inputs[i], Dim(*number));
    } else if (const auto* id = std::get_if<ValueId>(&operands[i]->value); id != nullptr && integer(*id)) {
      inner.bind(inputs[i], *integer(*id));
    } else {
      refuse_node(node, "an operand that is neither a tensor nor a size");
    }
  }
}

bool Importer::is_tensor(const Argument& argument) const {
  const auto* id = std::get_if<ValueId>(&argument.value);
  return id != nullptr && value(*id).kind == ValueKind::kTensor;
}

bool Importer::is_complex_tensor(const Argument& argument) const {
  return is_tensor(argument) && is_complex(value(std::get<ValueId>(argument.value)).tensor.dtype);
}

std::vector<core::Value*> Importer::tensors_of(std::span<const Argument* const> operands) {
  std::vector<core::Value*> values;
  for (const Argument* operand : operands) {
    if (is_tensor(*operand)) values.push_back(tensor(std::get<ValueId>(operand->value)));
  }
  return values;
}

// Runs the import of a graph, and returns its results.
std::vector<core::Value*> Importer::results_of(const Node& node) {
  run();
  std::vector<core::Value*> results;
  for (const Output& output : source_.outputs) {
    if (!is_tensor(output.value)) refuse_node(node, "a result that is not a tensor");
    results.push_back(tensor(std::get<ValueId>(output.value.value)));
  }
  for (SizeCheck& check : nested_checks_) checks_of_parent_->push_back(std::move(check));
  return results;
}

// Conditions on sizes in a graph hold wherever it may run: `unless` says for which sizes it does not.
void Importer::take_nested_checks(core::Graph& body, const std::optional<Predicate>& unless) {
  std::vector<SizeCheck> checks = ops::take_checks(body);
  complete_checks(body, checks);
  for (SizeCheck& check : checks) {
    if (unless) check.condition = either(*unless, std::move(check.condition));
    nested_checks_.push_back(std::move(check));
  }
  for (const auto& [name, info] : body.symbols)
    if (info.by_rank) graph_.symbols.insert_or_assign(name, info);  // the outermost graph declares all
  body.symbols.clear();
}

void Importer::import_branch(const Node& node) {
  const ControlArguments arguments = arguments_of(node);
  if (arguments.graphs.size() != 2 || arguments.others.empty())
    refuse_node(node, "it has other than two graphs");
  const Argument& given = *arguments.others[0];
  const std::vector<const Argument*> list = pointers(list_of(arguments, 1));
  const std::vector<core::Value*> operands = tensors_of(list);
  std::optional<Predicate> sizes;
  core::Value* condition = nullptr;
  if (is_tensor(given)) {
    condition = as_condition(graph_, tensor(std::get<ValueId>(given.value)));
  } else {
    const auto* id = std::get_if<ValueId>(&given.value);
    sizes = id == nullptr ? std::nullopt : answer_of(graph_, *id);
    if (!sizes) refuse_node(node, "a condition that is neither a tensor nor one on sizes");
    condition = compared(graph_, *sizes);
  }
  std::vector<core::Graph> graphs;
  std::vector<TensorType> types;
  for (size_t i = 0; i < 2; ++i) {
    core::Graph& body = graphs.emplace_back(i == 0 ? "then" : "otherwise");
    body.symbols = graph_.symbols;
    const Operands values(body, operands);
    Importer inner(*arguments.graphs[i], body, &nested_checks_);
    bind_operands(node, inner, list, values.with_weights(body, 0));
    body.outputs = inner.results_of(node);
    if (!symbols_bound_by_nodes(body).empty())
      refuse_node(node, "a size that follows from data in its graph");
    take_nested_checks(body, !sizes ? sizes : i == 0 ? negation(*sizes) : *sizes);
    types = types_of(body.outputs);
  }
  std::vector<core::Value*> all = operands;
  all.insert(all.begin(), condition);
  give_results(node, graph_.add_with_graphs(ops::branch, all, {}, std::move(graphs), types)->results);
}

void Importer::import_loop(const Node& node) {
  const ControlArguments arguments = arguments_of(node);
  if (arguments.graphs.size() != 2) refuse_node(node, "it has other than two graphs");
  const Graph &test = *arguments.graphs[0], &step = *arguments.graphs[1];
  std::vector<const Argument*> list = pointers(list_of(arguments, 0));
  const size_t carried = list.size();
  if (!std::ranges::all_of(list, [&](const Argument* each) { return is_tensor(*each); }))
    refuse_node(node, "it carries something other than tensors");
  const std::vector<const Argument*> further = pointers(list_of(arguments, 1));
  list.insert(list.end(), further.begin(), further.end());
  const std::vector<core::Value*> operands = tensors_of(list);

  const auto test_of = [&](core::Graph& graph, const std::vector<core::Value*>& values) {
    Importer inner(test, graph, &nested_checks_);
    bind_operands(node, inner, list, values);
    const std::vector<core::Value*> results = inner.results_of(node);
    if (results.size() != 1) refuse_node(node, "its condition has several results");
    return as_condition(graph, results[0]);
  };
  core::Value* condition = test_of(graph_, operands);

  std::vector<core::Graph> graphs;
  core::Graph& body = graphs.emplace_back("body");
  body.symbols = graph_.symbols;
  body.add_input("iteration", {DType::kI64, {}, {}});
  const Operands values(body, operands);
  std::vector<core::Value*> before = values.with_weights(body, carried);
  Importer inner(step, body, &nested_checks_);
  bind_operands(node, inner, list, before);
  std::vector<core::Value*> after = inner.results_of(node);
  if (after.size() != carried)
    refuse_node(node, "its graph returns another number of values than it carries");
  std::ranges::copy(after, before.begin());
  after.insert(after.begin(), test_of(body, before));
  give_results(node, loop_results(node, condition, operands, std::move(graphs), std::move(after)));
}

// The operands of a scan or map: carried ones, those whose rows it takes one after another, and others.
struct Importer::Scan {
  std::vector<const Argument*> list;
  size_t carried = 0, scanned = 0;
  size_t results = 0;  // that grow by a row: carried by the loop, too, and written in place
};

Importer::Scan Importer::scan_of(const Node& node) const {
  const ControlArguments arguments = arguments_of(node);
  const size_t rows = node.target == "higher_order.scan" ? 1 : 0;  // what is carried comes first
  Scan scan;
  if (rows == 1) scan.list = pointers(list_of(arguments, 0));
  scan.carried = scan.list.size();
  scan.scanned = list_of(arguments, rows).size();
  for (const size_t position : {rows, rows + 1})
    std::ranges::copy(pointers(list_of(arguments, position)), std::back_inserter(scan.list));
  scan.results = node.outputs.size() - std::min(node.outputs.size(), scan.carried);
  const auto are_tensors = std::ranges::all_of(std::span(scan.list).first(scan.carried + scan.scanned),
                                               [&](const Argument* each) { return is_tensor(*each); });
  if (arguments.graphs.size() != 1 || scan.scanned == 0) refuse_node(node, "it has no graph, or no rows");
  if (!are_tensors) refuse_node(node, "it carries something other than tensors");
  for (const Argument* rows_of : std::span(scan.list).subspan(scan.carried, scan.scanned)) {
    if (value(std::get<ValueId>(rows_of->value)).tensor.shape.empty())
      refuse_node(node, "an operand without rows");
  }
  return scan;
}

// What the loop takes: its carried values, its results, at first zeros, and then the other operands.
std::vector<core::Value*> Importer::loop_operands(const Node& node, const Scan& scan) {
  std::vector<core::Value*> operands = tensors_of(scan.list);
  std::vector<core::Value*> results;
  for (const auto& output : std::span(node.outputs).last(scan.results)) {
    if (!output) refuse_node(node, "a result that is not recorded");
    const TensorType type = imported_type(value(*output).tensor);
    results.push_back(graph_.call(ops::full, {}, ops::Full{.dtype = type.dtype, .shape = type.shape}));
  }
  operands.insert(operands.begin() + static_cast<ptrdiff_t>(scan.carried), results.begin(), results.end());
  return operands;
}

namespace {

core::Value* row_of(core::Graph& graph, core::Value* rows, core::Value* position) {
  core::Value* row = graph.call(ops::take, {rows, position}, ops::Axis{0});
  return graph.call(ops::reshape, {row},
                    ops::NewShape{Shape(row->type.shape.begin() + 1, row->type.shape.end())});
}
core::Value* with_row(core::Graph& graph, core::Value* rows, core::Value* position, core::Value* row) {
  Shape shape = row->type.shape;
  shape.insert(shape.begin(), 1);
  row = graph.call(ops::reshape, {row}, ops::NewShape{shape});
  return graph.call(ops::index_copy, {rows, position, row}, ops::Axis{0});
}

}  // namespace

void Importer::import_scan(const Node& node) {
  const Scan scan = scan_of(node);
  std::vector<core::Value*> operands = loop_operands(node, scan);
  const size_t passed_on = scan.carried + scan.results, others = passed_on + scan.scanned;
  const Dim count = operands[passed_on]->type.shape[0];

  std::vector<core::Graph> graphs;
  core::Graph& body = graphs.emplace_back("body");
  body.symbols = graph_.symbols;
  core::Value* iteration = body.add_input("iteration", {DType::kI64, {}, {}});
  core::Value* position = body.call(ops::reshape, {iteration}, ops::NewShape{{1}});
  const std::vector<core::Value*> inside = Operands(body, operands).with_weights(body, passed_on);
  std::vector<core::Value*> read(inside.begin(), inside.begin() + static_cast<ptrdiff_t>(scan.carried));
  for (size_t i = passed_on; i < others; ++i) read.push_back(row_of(body, inside[i], position));
  read.insert(read.end(), inside.begin() + static_cast<ptrdiff_t>(others), inside.end());

  Importer inner(*graphs_of(node)[0], body, &nested_checks_);
  bind_operands(node, inner, scan.list, read);
  std::vector<core::Value*> after = inner.results_of(node);
  if (after.size() != passed_on) refuse_node(node, "its graph returns another number of values");
  for (size_t i = scan.carried; i < passed_on; ++i) after[i] = with_row(body, inside[i], position, after[i]);
  core::Value* next = body.call(ops::add, {iteration, size_scalar(body, 1, DType::kI64)});
  after.insert(after.begin(), body.call(ops::less, {next, size_scalar(body, count, DType::kI64)}));
  give_results(node, loop_results(node, compared(graph_, is_less(0, count)), std::move(operands),
                                  std::move(graphs), std::move(after)));
}

// `results`: of the body.
std::vector<core::Value*> Importer::loop_results(const Node& node, core::Value* condition,
                                                 std::vector<core::Value*> operands,
                                                 std::vector<core::Graph> graphs,
                                                 std::vector<core::Value*> results) {
  core::Graph& body = graphs[0];
  const std::vector<TensorType> types = types_of({results.begin() + 1, results.end()});
  body.outputs = std::move(results);
  if (!symbols_bound_by_nodes(body).empty()) refuse_node(node, "a size that follows from data in its graph");
  take_nested_checks(body, std::nullopt);
  operands.insert(operands.begin(), condition);
  return graph_.add_with_graphs(ops::loop, operands, {}, std::move(graphs), types)->results;
}

void Importer::give_results(const Node& node, const std::vector<core::Value*>& results) {
  for (size_t i = 0; i < node.outputs.size() && i < results.size(); ++i) {
    if (!node.outputs[i]) continue;
    require_recorded(node, i, value(*node.outputs[i]), results[i], graph_.symbols);
    give(*node.outputs[i], results[i]);
  }
}

}  // namespace ingot::core::aten
