// SPDX-License-Identifier: Apache-2.0
// `ingot compare`: how far the outputs of an engine are from a reference.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/array_file.h"
#include "cli/commands.h"
#include "cli/difference.h"
#include "cli/node_errors.h"
#include "cli/side.h"

namespace ingot::cli {
namespace {

using Json = nlohmann::json;

struct Row {
  const Array* result;
  Difference difference;
};

// What was run or read on both sides.
struct Sides {
  std::vector<Array> results, references;
  NodeValues nodes;  // if both are engines
};

void check_arguments(const CompareCommand& command) {
  const RunCommand& run = command.run;
  const bool is_run = !is_array_file(run.engine) || !is_array_file(command.reference);
  if (is_run || (run.inputs.empty() && run.shapes.empty() && run.weights.empty())) return;
  throw CommandError("two files of arrays are compared as they are: no --input, --shapes or --weights", 2);
}

// The result's inputs decide: its sizes may be fixed where those of the reference are not.
Sides run_sides(const CompareCommand& command) {
  Sides sides;
  // Before any work is done for a file that is missing.
  if (is_array_file(command.run.engine)) sides.results = read_arrays(command.run.engine);
  if (is_array_file(command.reference)) sides.references = read_arrays(command.reference);
  std::optional<Session> result, reference;
  if (!is_array_file(command.run.engine))
    result.emplace(open_side(command.run.engine, command.run), command.run);
  if (!is_array_file(command.reference)) {
    EngineHandle engine = open_side(command.reference, command.run);
    result ? reference.emplace(std::move(engine), result->inputs())
           : reference.emplace(std::move(engine), command.run);
  }
  if (result) sides.results = reference ? sides.nodes.record(*result) : result->run();
  if (reference) sides.references = result ? sides.nodes.compare_with(*reference) : reference->run();
  return sides;
}

std::vector<int64_t> indices(const Array& array, size_t position) {
  std::vector<int64_t> result(array.shape.size());
  for (size_t axis = result.size(); axis-- > 0;) {
    const auto size = static_cast<size_t>(array.shape[axis]);
    result[axis] = static_cast<int64_t>(position % size);
    position /= size;
  }
  return result;
}

Json describe(const Array& array, const ElementPair& pair) {
  return {{"at", indices(array, pair.position)}, {"result", pair.result}, {"reference", pair.reference}};
}

Json describe(const Row& row) {
  const Difference& difference = row.difference;
  Json json = {{"name", row.result->name},
               {"dtype", dtype_name(row.result->dtype)},
               {"shape", row.result->shape},
               {"is_within", difference.is_within()}};
  if (!difference.problem.empty()) {
    json["problem"] = difference.problem;
    return json;
  }
  json["elements"] = difference.elements;
  json["outside"] = difference.outside;
  json["largest"] = difference.largest;
  json["share"] = difference.share;
  if (difference.largest > 0) json["largest_at"] = describe(*row.result, difference.largest_at);
  if (difference.share > 0) json["share_at"] = describe(*row.result, difference.share_at);
  return json;
}

void print_json(const std::vector<Row>& rows, const std::vector<NodeError>& nodes, bool is_within) {
  Json json = {{"is_within", is_within}, {"outputs", Json::array()}, {"nodes", Json::array()}};
  for (const Row& row : rows) json["outputs"].push_back(describe(row));
  for (const NodeError& node : nodes)
    json["nodes"].push_back(
        {{"node", node.node}, {"op", node.op}, {"source", node.source}, {"error", node.error}});
  fmt::print("{}\n", json.dump(2));
}

void print(const Row& row) {
  const Array& array = *row.result;
  const Difference& difference = row.difference;
  fmt::print("{}: ", array.name.empty() ? "output" : array.name);
  if (!difference.problem.empty()) return fmt::print("{}\n", difference.problem);
  fmt::print("{}[{}]  ", dtype_name(array.dtype), fmt::join(array.shape, ","));
  if (difference.largest == 0) return fmt::print("equal\n");
  const auto at = [&](const ElementPair& pair) {
    return fmt::format("at [{}]: {:.9g} for {:.9g}", fmt::join(indices(array, pair.position), ","),
                       pair.result, pair.reference);
  };
  if (difference.outside > 0)
    fmt::print("{} of {} elements differ by more than the tolerance\n", difference.outside,
               difference.elements);
  else
    fmt::print("within the tolerance\n");
  fmt::print("  {:.3g} times the tolerance {}\n  largest difference {:.3g} {}\n", difference.share,
             at(difference.share_at), difference.largest, at(difference.largest_at));
}

void print_nodes(const std::vector<NodeError>& nodes, size_t top) {
  if (nodes.empty() || top == 0) return;
  fmt::print("{:>9}  node\n", "error");
  for (size_t i = 0; i < std::min(top, nodes.size()); ++i)
    fmt::print("{:9.2e}  {} ({})  {}\n", nodes[i].error, nodes[i].node, nodes[i].op, nodes[i].source);
  if (nodes.size() > top) fmt::print("and {} nodes with smaller errors\n", nodes.size() - top);
}

}  // namespace

bool compare(const CompareCommand& command) {
  check_arguments(command);
  const Sides sides = run_sides(command);
  const std::vector<const Array*> references = match_outputs(sides.results, sides.references);
  std::vector<Row> rows;
  for (size_t i = 0; i < sides.results.size(); ++i)
    rows.push_back({&sides.results[i], difference_of(sides.results[i], *references[i], command.tolerance)});
  const bool is_within = std::ranges::all_of(rows, [](const Row& row) { return row.difference.is_within(); });
  const std::vector<NodeError> nodes = sides.nodes.worst();
  if (command.run.json) {
    print_json(rows, nodes, is_within);
    return is_within;
  }
  for (const Row& row : rows) print(row);
  print_nodes(nodes, command.top);
  return is_within;
}

}  // namespace ingot::cli
