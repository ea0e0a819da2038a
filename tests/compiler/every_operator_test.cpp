// SPDX-License-Identifier: Apache-2.0
// Each sample of each operator, by itself and between others, goes the whole way up to code generation for
// each backend: no pass or rule may assume a result, an operand, a rank or a dtype that an operator lacks.
#include <gtest/gtest.h>

#include <algorithm>

#include "api/compiler/backends.h"
#include "compiler/lower.h"
#include "compiler/target_pipeline.h"
#include "ops/model_source.h"
#include "ops/ops.h"
#include "ops/view.h"
#include "passes/hoist.h"
#include "passes/pass_runner.h"
#include "support/error.h"
#include "tests/ops/sample_graph.h"

namespace ingot::core::test {
namespace {

// What produces the operands of the node, and what reads its results.
enum class Neighbours : uint8_t { kNone, kElementwise, kWeights, kOnlyWeights };

bool is_literal(const Dim& dim) { return dim.constant().has_value(); }

Value* weight_like(Graph& graph, const TensorType& type) {
  ops::ModelSource source{.name = "w", .dtype = type.dtype};
  for (const Dim& dim : type.shape) source.shape.push_back(*dim.constant());
  return graph.call(ops::weight, {}, source);
}

// Computes something in any dtype that leaves shape and dtype as they are.
Value* doubled(Graph& graph, Value* value) {
  const DType dtype = value->type.dtype;
  if (dtype == DType::kBool) return graph.call(ops::logical_not, {value});
  return is_floating(dtype) || is_integer(dtype) ? graph.call(ops::add, {value, value}) : value;
}

Value* in_row_major(Graph& graph, Value* value) {
  const bool is_so = value->type.layout.is_row_major();
  return is_so ? value : graph.call(ops::relayout, {value}, ops::Relayout{});
}

Value* operand_from(Graph& graph, Value* input, size_t position, Neighbours neighbours) {
  if (neighbours == Neighbours::kElementwise) return doubled(graph, input);
  const bool may_be_weight =
      neighbours == Neighbours::kOnlyWeights || (neighbours == Neighbours::kWeights && position > 0);
  const bool is_weight =
      may_be_weight && is_floating(input->type.dtype) && std::ranges::all_of(input->type.shape, is_literal);
  return is_weight ? weight_like(graph, input->type) : input;
}

// The sample's node behind and before the neighbours. Nothing where the record rejects the dtype.
std::optional<Graph> surrounded(const Op& op, const Sample& sample, DType dtype, Neighbours neighbours) {
  try {
    SampleGraph made = make_sample_node(op, sample, dtype);
    Graph& graph = made.graph;
    for (size_t i = 0; i < made.node->operands.size(); ++i) {
      if (made.node->operands[i] == nullptr) continue;
      const Graph::InsertBefore scope(graph, made.node);
      graph.set_operand(made.node, i, operand_from(graph, made.node->operands[i], i, neighbours));
    }
    if (neighbours == Neighbours::kElementwise) {
      for (Value*& output : graph.outputs) output = doubled(graph, output);
    }
    for (Value*& output : graph.outputs) output = in_row_major(graph, output);
    return std::move(graph);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

std::vector<Target> targets_of(const Backend& backend) {
  std::vector<std::string> devices = {""};
  if (backend.name() == "cpu") devices = {"x86-64-v3", "x86-64-v4+vnni+bf16"};
  std::vector<Target> targets;
  for (const std::string& words : devices) {
    Target target{.backend = std::string(backend.name()), .device = backend.device(words), .level = 0};
    targets.push_back(target);
    target.level = 3;
    target.precisions = {DType::kF16, DType::kBF16};
    targets.push_back(target);
  }
  return targets;
}

bool runs(const Graph& graph, const Backend& backend, const Target& target) {
  const SymbolValues sizes = typical_sizes(graph.symbols);
  return std::ranges::all_of(graph.nodes(), [&](const auto& node) {
    return node->op->traits.has(Trait::kSource) ||
           backend.supports(*node, sizes, target).answer != Support::Answer::kNo;
  });
}

void lower_for(Graph graph, const Backend& backend, const Target& target) {
  NodeReports reports;
  PassRunner runner(pipeline_for(backend, target, &reports), {.level = target.level});
  Split split{.init = Graph("init"), .main = std::move(graph)};
  for (const Stage stage : {Stage::kSimplify, Stage::kAdapt}) split = runner.run(stage, std::move(split));
  if (!runs(split.main, backend, target)) return;
  for (const Stage stage : {Stage::kLayout, Stage::kHoist, Stage::kFuse, Stage::kJoin})
    split = runner.run(stage, std::move(split));
  ImageTable images;
  for (const Graph* program : {&split.init, &split.main})
    lower_graph(*program, {backend, target}, split.main.symbols, images);
}

class EveryOperator : public ::testing::TestWithParam<const Op*> {};

TEST_P(EveryOperator, IsLoweredByEachBackend) {
  const Op& op = *GetParam();
  for (const Sample& sample : op.samples()) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
      for (const Neighbours neighbours :
           {Neighbours::kNone, Neighbours::kElementwise, Neighbours::kWeights, Neighbours::kOnlyWeights}) {
        const std::optional<Graph> graph = surrounded(op, sample, dtype, neighbours);
        if (!graph) continue;
        for (const Backend* backend : api::backends()) {
          for (const Target& target : targets_of(*backend))
            EXPECT_NO_THROW(lower_for(graph->clone(), *backend, target))
                << target.text() << " " << name(dtype);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryOperator, ::testing::ValuesIn(test::ops_with_samples()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace ingot::core::test
