// SPDX-License-Identifier: Apache-2.0
// Branches and loops. Results that grow by a row per iteration are carried whole, and written in place.
#include <array>
#include <utility>

#include <fmt/core.h>

#include "importers/onnx/converters/converters.h"
#include "importers/onnx/found_sizes.h"
#include "importers/onnx/nested_graph.h"
#include "ir/control_flow.h"
#include "ops/axis.h"

namespace ingot::core::onnx {
namespace {

Value* as_scalar(Graph& graph, Value* value, DType dtype) {
  value = converted(graph, value, dtype);
  return value->type.rank() == 0 ? value : reshaped(graph, value, {});
}

Value* both(Graph& graph, Value* a, Value* b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  return graph.call(ops::logical_and, {a, b});
}

bool are_alike(const TensorType& a, const TensorType& b) { return a.dtype == b.dtype && a.shape == b.shape; }

void give_results(Call& call, std::span<Value* const> results) {
  for (size_t i = 0; i < call.outputs(); ++i) {
    if (call.wants(i)) call.give(i, results[i]);
  }
}

Graph imported_branch(Call& call, const GraphDef& def, const char* name, std::span<const std::string> names,
                      std::vector<Value*>& operands) {
  NestedGraph branch(call, def, name);
  operands = branch.bring_in(call.scope(), names);
  if (def.outputs.size() < call.outputs()) refuse_node("it has more outputs than its graph");
  return branch.take(branch.import());
}

// A condition or count that the build knows. Nullopt: a value of the run.
std::optional<Dim> known_scalar(Call& call, size_t input) {
  std::optional<Sizes> known = call.sizes(input);
  if (!known) return std::nullopt;
  if (known->elements.size() != 1) refuse_node(fmt::format("input {} is not a single value", input));
  return std::move(known->elements[0]);
}

void convert_if(Call& call) {
  const GraphDef &then = call.attribute_graph("then_branch"),
                 &otherwise = call.attribute_graph("else_branch");
  const std::optional<Dim> known = known_scalar(call, 0);
  if (known && known->is_constant())  // only that branch exists for us
    return call.scope().run(*known != Dim(0) ? then : otherwise, call.node().outputs);
  const std::vector<std::string> names = names_from_outside(std::array{&then, &otherwise});
  std::vector<Value*> operands;  // the same of both
  std::vector<Graph> graphs;
  graphs.push_back(imported_branch(call, then, "then", names, operands));
  graphs.push_back(imported_branch(call, otherwise, "otherwise", names, operands));
  const std::vector<TensorType> types = types_of(graphs[0].outputs), others = types_of(graphs[1].outputs);
  if (types.size() != others.size()) refuse_node("its graphs have different numbers of outputs");
  for (size_t i = 0; i < types.size(); ++i) {
    if (!are_alike(types[i], others[i]))
      refuse(fmt::format("output {} is {} in one of its graphs, and {} in the other", i, to_string(types[i]),
                         to_string(others[i])));
  }
  operands.insert(operands.begin(), as_scalar(call.graph(), call.tensor(0), DType::kBool));
  give_results(
      call,
      call.graph().add_with_graphs(ops::branch, std::move(operands), {}, std::move(graphs), types)->results);
}

constexpr int64_t kMostRows = int64_t{1} << 40;  // more do not fit in memory

// A loop that never runs has a body as well, whose row has a place.
Dim room_for(const Dim& count) { return count == Dim(0) ? Dim(1) : count; }

// A loop that is being made:
//   loop(condition, carried..., grown..., others...)
//     graph: (iteration, carried..., grown..., others...) -> (go on, carried..., grown...)
struct Loop {
  Loop(Call& call, const GraphDef& def, std::span<Value* const> initial)
      : outer(call.graph()), nested(call, def, "body"), operands(initial.begin(), initial.end()) {
    iteration = body().add_input("iteration", {DType::kI64, {}, {}});
    for (const Value* value : initial) carried.push_back(body().add_input(value->name, value->type));
  }
  Graph& body() { return nested.graph(); }

  // One more value that iterations carry, as the body reads it; what it becomes is the next of `after`.
  Value* carry(const char* name, Value* before) {
    const size_t position = after.size();
    operands.insert(operands.begin() + static_cast<ptrdiff_t>(position), before);
    return body().insert_input(1 + position, name, before->type);
  }
  // Iteration `number` of the body writes its row there, of `count`.
  void grow(Value* row, Value* number, const Dim& count) {
    Shape shape = row->type.shape;
    shape.insert(shape.begin(), room_for(count));
    Value* rows = carry("rows", filled(outer, shape, 0, row->type.dtype));
    row = unsqueezed(body(), row, 0);
    number = reshaped(body(), number, {1});
    after.push_back(body().call(ops::index_copy, {rows, number, row}, ops::Axis{0}));
  }

  // The results of iterations while both conditions hold; `go_on` is of the body. Null: true.
  std::vector<Value*> results(Value* begin, Value* go_on) {
    for (size_t i = 0; i < carried.size(); ++i) {
      if (!are_alike(after[i]->type, carried[i]->type))
        refuse(fmt::format("its graph makes {} of value {}, which is {}", to_string(after[i]->type), i,
                           to_string(carried[i]->type)));
    }
    const std::vector<TensorType> types = types_of(after);
    after.insert(after.begin(), go_on);
    std::vector<Graph> graphs;
    graphs.push_back(nested.take(std::move(after)));
    operands.insert(operands.begin(), begin);
    return outer.add_with_graphs(ops::loop, std::move(operands), {}, std::move(graphs), types)->results;
  }

  Graph& outer;
  NestedGraph nested;
  std::vector<Value*> operands;  // but for the condition
  Value* iteration = nullptr;
  std::vector<Value*> carried, after;  // in the body, before and after an iteration
};

Value* is_below(Graph& graph, Value* number, const Dim& count) {
  return graph.call(ops::less, {number, size_scalar(graph, count, DType::kI64)});
}
Value* next(Graph& graph, Value* iteration) {
  return graph.call(ops::add, {iteration, size_scalar(graph, 1, DType::kI64)});
}

// How often a Loop runs at most: a size, or a value of the run. Neither: it has a condition.
struct TripCount {
  std::optional<Dim> known;
  Value* computed = nullptr;
};
// `is_size`: the caller needs a size, which a value of the run becomes.
TripCount trip_count(Call& call, bool is_size) {
  if (!call.has(0)) return {};
  if (const std::optional<Dim> known = known_scalar(call, 0)) return {maximum(*known, 0), nullptr};
  Graph& graph = call.graph();
  Value* computed = as_scalar(graph, call.tensor(0), DType::kI64);
  if (!is_size) return {{}, computed};
  computed = graph.call(ops::maximum, {computed, size_scalar(graph, 0, DType::kI64)});
  return {found_size(call, computed, kMostRows, "rows").size, nullptr};
}

bool has_room(const TripCount& count) {
  return count.known && (!count.known->is_constant() || *count.known->constant() <= kMostRows);
}

void convert_loop(Call& call) {
  constexpr size_t kFirst = 2;  // behind the trip count and the condition
  const GraphDef& def = call.attribute_graph("body");
  std::vector<Value*> initial;
  for (size_t i = kFirst; i < call.inputs(); ++i) initial.push_back(call.tensor(i));
  const size_t carried = initial.size();
  if (def.outputs.size() < 1 + carried || def.outputs.size() < 1 + call.outputs())
    refuse_node("its graph has too few outputs");
  Graph& graph = call.graph();
  const bool grows = def.outputs.size() > 1 + carried;
  const TripCount count = trip_count(call, grows);
  const std::optional<Dim> known = call.has(1) ? known_scalar(call, 1) : Dim(1);
  const bool begins = known && known->is_constant() && *known != Dim(0);
  Value* begin = begins ? nullptr : as_scalar(graph, call.tensor(1), DType::kBool);

  const Sizes always{DType::kBool, {}, {Dim(1)}};
  Loop loop(call, def, initial);
  Graph& body = loop.body();
  loop.nested.bind(loop.iteration);
  loop.nested.bind(always);  // an iteration runs only where its condition holds
  for (Value* value : loop.carried) loop.nested.bind(value);
  const auto names = names_from_outside(std::array{&def});
  for (Value* value : loop.nested.bring_in(call.scope(), names)) loop.operands.push_back(value);
  Value* go_on = nullptr;
  if (count.computed != nullptr) {
    begin =
        both(graph, begin, graph.call(ops::greater, {count.computed, size_scalar(graph, 0, DType::kI64)}));
    Value* most = body.add_input("trips", count.computed->type);
    loop.operands.push_back(count.computed);
    go_on = body.call(ops::less, {next(body, loop.iteration), most});
  } else if (count.known) {
    begin = both(graph, begin, is_below(graph, size_scalar(graph, 0, DType::kI64), *count.known));
    go_on = is_below(body, next(body, loop.iteration), *count.known);
  }
  const std::vector<Value*> results = loop.nested.import();
  const bool ends_early = !loop.nested.is_true(0);
  if (ends_early) go_on = both(body, go_on, as_scalar(body, results[0], DType::kBool));
  if (go_on == nullptr) refuse_node("it has neither a trip count nor a condition that ends it");
  if (begin == nullptr) begin = graph.add_constant(to_tensor(always));
  loop.after.assign(results.begin() + 1, results.begin() + 1 + static_cast<ptrdiff_t>(carried));
  const bool is_counted = grows && (ends_early || !begins);  // by the run
  if (grows) require(has_room(count), "an output with a row per iteration, whose number has no limit");
  for (size_t i = 1 + carried; i < results.size(); ++i) loop.grow(results[i], loop.iteration, *count.known);
  if (is_counted) {
    loop.carry("iterations", size_scalar(graph, 0, DType::kI64));
    loop.after.push_back(next(body, loop.iteration));
  }
  std::vector<Value*> given = loop.results(begin, go_on);
  const bool is_empty = count.known == Dim(0);
  if (is_counted || is_empty) {
    const Dim rows = is_empty ? Dim(0) : found_size(call, given.back(), *count.known, "rows").size;
    for (size_t i = carried; i < def.outputs.size() - 1; ++i) given[i] = sliced(graph, given[i], 0, 0, rows);
  }
  give_results(call, given);
}

int64_t entry(const std::vector<int64_t>& values, size_t index) {
  return index < values.size() ? values[index] : 0;
}

// The number of the row that an iteration takes: of the first, or of the last ones first.
Value* row_number(Graph& body, Value* iteration, const Dim& count, bool is_reversed) {
  if (!is_reversed) return iteration;
  return body.call(ops::subtract, {size_scalar(body, count - 1, DType::kI64), iteration});
}

// What a loop reads that may never run: a row of zeros in place of none.
Value* with_room(Graph& graph, Value* rows, size_t axis) {
  Shape shape = rows->type.shape;
  if (shape[axis] != Dim(0)) return rows;
  shape[axis] = 1;
  return filled(graph, shape, 0, rows->type.dtype);
}

Value* with_rows_at(Graph& graph, Value* rows, size_t axis) {
  std::vector<int64_t> order = all_axes(rows->type.rank());
  order.erase(order.begin());
  order.insert(order.begin() + static_cast<ptrdiff_t>(axis), 0);
  return transposed(graph, rows, std::move(order));
}

void convert_scan(Call& call) {
  const GraphDef& def = call.attribute_graph("body");
  const auto rows = static_cast<size_t>(call.attribute_integer("num_scan_inputs", 0));
  std::vector<Value*> initial = call.tensors();
  if (rows == 0 || rows > initial.size()) refuse_node("num_scan_inputs is not a number of its inputs");
  const std::vector<Value*> scanned(initial.end() - static_cast<ptrdiff_t>(rows), initial.end());
  initial.resize(initial.size() - rows);
  const size_t carried = initial.size();
  if (def.outputs.size() < carried || def.outputs.size() < call.outputs())
    refuse_node("its graph has too few outputs");
  const std::vector<int64_t> axes = call.attributes("scan_input_axes"),
                             directions = call.attributes("scan_input_directions"),
                             output_axes = call.attributes("scan_output_axes"),
                             output_directions = call.attributes("scan_output_directions");
  Graph& graph = call.graph();
  const Dim count = dim_of(scanned[0], call.axis(entry(axes, 0), scanned[0]->type.rank()));

  Loop loop(call, def, initial);
  Graph& body = loop.body();
  for (Value* value : loop.carried) loop.nested.bind(value);
  for (size_t i = 0; i < rows; ++i) {
    const size_t axis = call.axis(entry(axes, i), scanned[i]->type.rank());
    if (dim_of(scanned[i], axis) != count) refuse_node("its inputs have different numbers of rows");
    Value* operand = with_room(graph, scanned[i], axis);
    Value* all = body.add_input(scanned[i]->name, operand->type);
    loop.operands.push_back(operand);
    Value* number = row_number(body, loop.iteration, room_for(count), entry(directions, i) != 0);
    Value* row =
        body.call(ops::take, {all, reshaped(body, number, {1})}, ops::Axis{static_cast<int64_t>(axis)});
    loop.nested.bind(without_axis(body, row, axis));
  }
  const auto names = names_from_outside(std::array{&def});
  for (Value* value : loop.nested.bring_in(call.scope(), names)) loop.operands.push_back(value);
  const std::vector<Value*> results = loop.nested.import();
  loop.after.assign(results.begin(), results.begin() + static_cast<ptrdiff_t>(carried));
  for (size_t i = carried; i < results.size(); ++i) {
    Value* number =
        row_number(body, loop.iteration, room_for(count), entry(output_directions, i - carried) != 0);
    loop.grow(results[i], number, count);
  }
  Value* begin = is_below(graph, size_scalar(graph, 0, DType::kI64), count);
  std::vector<Value*> given = loop.results(begin, is_below(body, next(body, loop.iteration), count));
  for (size_t i = carried; i < given.size(); ++i) {
    if (count == Dim(0)) given[i] = sliced(graph, given[i], 0, 0, count);
    given[i] =
        with_rows_at(graph, given[i], call.axis(entry(output_axes, i - carried), given[i]->type.rank()));
  }
  give_results(call, given);
}

constexpr auto kControl = std::to_array<Converter>({
    {"If", convert_if},
    {"Loop", convert_loop},
    {"Scan", convert_scan, nullptr, 9},  // before, its inputs had a dim for the batch
});

}  // namespace

std::span<const Converter> control_converters() { return kControl; }

}  // namespace ingot::core::onnx
