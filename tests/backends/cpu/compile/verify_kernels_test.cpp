// SPDX-License-Identifier: Apache-2.0
// The compiler's own check of kernels: right ones pass, wrong ones do not.
#include "compiler/verify_kernels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backends/cpu/compile/backend.h"
#include "backends/cpu/execute/execute.h"
#include "ops/attention.h"
#include "ops/ops.h"
#include "ops/samples.h"
#include "passes/target_passes.h"
#include "support/error.h"
#include "support/thread_pool.h"
#include "tests/ops/sample_graph.h"

namespace ingot::core::cpu {
namespace {

using core::test::make_sample_node;

// The steps of a graph with their images, one each.
struct Lowered {
  std::vector<NodeStep> steps;
  std::vector<Image> images;
};

Lowered lower(const Graph& graph, const Target& target) {
  Lowered lowered;
  for (const auto& node : graph.nodes()) {
    for (LoweredStep& step : backend().lower(*node, graph.symbols, target)) {
      LoweredKernel* kernel = step.kernel();
      if (kernel == nullptr) continue;
      kernel->launch.image = static_cast<ImageId>(lowered.images.size());
      lowered.images.push_back(kernel->compile());
      lowered.steps.push_back(
          {.node = node.get(), .step = std::move(step), .node_records = {}, .backend = "cpu"});
    }
  }
  return lowered;
}

Target native() { return {.device = "native"}; }

size_t verified(const Lowered& lowered, const Graph& graph) {
  ThreadPool pool(2, 0);
  std::set<ImageId> done;
  verify_kernels(lowered.steps, lowered.images, graph.symbols, {&executor(), &pool}, done);
  return done.size();
}

Graph fused(Graph graph) {
  const Target target = native();
  Rewrites all;
  return fuse(std::move(graph),
              {.may_take_consumer =
                   [=](const Node& root, const Node& node) {
                     return backend().may_fuse_consumer(root, node, target).yes;
                   },
               .may_take_producer =
                   [=](const Node& root, const Node& node) {
                     return backend().may_fuse_producer(root, node, target).yes;
                   }},
              all);
}

Graph chain(std::initializer_list<const Op*> ops) {
  Graph graph;
  graph.symbols["N"] = {.range = {1, 64}};
  Value* value = graph.add_input("x", {DType::kF32, {Dim::symbol("N"), 40}, {}});
  for (const Op* op : ops) value = graph.call(*op, {value}, op->attributes.defaults());
  graph.outputs = {value};
  return graph;
}

TEST(VerifyKernels, PassesWhatIsRight) {
  const Graph graph = fused(chain({&ops::absolute, &ops::relu}));
  EXPECT_EQ(verified(lower(graph, native()), graph), 1U);
}

// LLVM's former miscompilation of relu(abs(x)): the code of relu(x).
TEST(VerifyKernels, RefusesAWrongImage) {
  const Graph graph = fused(chain({&ops::absolute, &ops::relu})), other = chain({&ops::relu});
  Lowered lowered = lower(graph, native());
  lowered.images = lower(other, native()).images;
  try {
    verified(lowered, graph);
    FAIL() << "relu(x) passed for relu(abs(x))";
  } catch (const Error& error) {
    EXPECT_EQ(error.details().code, "INGOT-I002");
    for (const char* text : {"kernel absolute_relu(", "max(0.0, abs(x[", "element "})
      EXPECT_NE(error.details().message.find(text), std::string::npos) << error.what();
  }
}

// Differences that only special values show.
TEST(VerifyKernels, RefusesWhatIsWrongForSpecialValues) {
  const Graph graph = chain({&ops::is_nan}), other = chain({&ops::is_infinite});
  Lowered lowered = lower(graph, native());
  lowered.images = lower(other, native()).images;
  EXPECT_THROW(verified(lowered, graph), Error);
}

TEST(VerifyKernels, KnowsEverySampleOfEveryOperator) {
  size_t count = 0;
  for (const Op* op : ops::all_ops()) {
    if (op->lower == nullptr || op->samples == nullptr) continue;
    for (const Sample& sample : op->samples()) {
      for (const DType dtype : {DType::kF32, DType::kBF16}) {
        try {
          const auto made = make_sample_node(*op, sample, dtype);
          count += verified(lower(made.graph, native()), made.graph);
        } catch (const UserError&) {  // not of this dtype
        } catch (const Error& error) {
          ADD_FAILURE() << op->name << ": " << error.what();
        }
      }
    }
  }
  EXPECT_GT(count, 300U);
}

// Elementwise functions of f32 as their samples call them, applied to `value`.
std::vector<Value*> neighbours(Graph& graph, Value* value) {
  std::vector<Value*> results;
  for (const Op* op : ops::all_ops()) {
    if (!op->traits.has(Trait::kElementwise) || op->lower == nullptr || op->samples == nullptr) continue;
    const Sample sample = op->samples()[0];
    std::vector<Value*> operands;
    for (const SampleOperand& operand : sample.operands) {
      TensorType type = value->type;
      type.dtype = operand.type.dtype;
      operands.push_back(operands.empty() ? value : graph.add_input("y", type));
    }
    if (sample.operands.empty() || sample.operands[0].type.dtype != DType::kF32) continue;
    const AttributeValues attributes =
        sample.attributes.empty() ? op->attributes.defaults() : sample.attributes;
    results.push_back(graph.call(*op, operands, attributes));
  }
  return results;
}

// Contractions by their templates, with each elementwise function as epilogue.
TEST(VerifyKernels, PassesContractionsAndTheirNeighbours) {
  const Target target = native();
  size_t count = 0;
  for (const Op* op : {&ops::linear, &ops::matmul, &ops::convolution, &ops::attention}) {
    for (size_t which = 0;; ++which) {
      auto made = make_sample_node(*op, op->samples()[0]);
      const std::vector<Value*> results = neighbours(made.graph, made.node->results[0]);
      if (which == results.size()) break;
      made.graph.outputs = {results[which]};
      made.graph.erase_dead_nodes();
      const std::string name(results[which]->producer->op->name);
      Rewrites all;
      Graph graph = assign_layouts(
          std::move(made.graph), [&](const Node& node) { return backend().layouts(node, target); }, all);
      graph = fused(std::move(graph));
      try {
        count += verified(lower(graph, target), graph);
      } catch (const Error& error) {
        ADD_FAILURE() << op->name << ", " << name << ": " << error.what();
      }
    }
  }
  EXPECT_GT(count, 200U);
}

// Special values meet others in operands of each shape: infinities and powers that are almost 0, hidden
// scores.
TEST(VerifyKernels, PassesAttentionWithSpecialValues) {
  const ops::Attention kWays[] = {{}, {.causal = true}, {.causal = true, .causal_by_sum = true}};
  size_t count = 0;
  for (const int64_t queries : {1, 3, 8, 17, 64, 100}) {
    for (const int64_t keys : {1, 7, 8, 64, 150}) {
      for (const int way : {0, 1, 2, 3, 4, 5}) {
        const ops::Attention attributes = kWays[way < 3 ? way : 0];
        std::vector<SampleOperand> operands = {ops::f32({2, queries, 4}), ops::f32({2, keys, 4}),
                                               ops::f32({2, keys, 4})};
        if (way == 3) operands.push_back(ops::boolean_tensor({queries, keys}));
        if (way == 4) operands.push_back(ops::boolean_tensor({1, keys}));
        if (way == 5) operands.push_back(ops::f32({queries, keys}));
        auto made = make_sample_node(ops::attention, ops::sample(std::move(operands), attributes));
        SCOPED_TRACE(fmt::format("{} queries, {} keys, way {}", queries, keys, way));
        try {
          count += verified(lower(made.graph, native()), made.graph);
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
        }
      }
    }
  }
  EXPECT_EQ(count, 6U * 5 * 6);
}

}  // namespace
}  // namespace ingot::core::cpu
