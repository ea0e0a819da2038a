// SPDX-License-Identifier: Apache-2.0
// The text of a composed kernel is a cache key: kernels that differ have texts that differ.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "ops/ops.h"
#include "ops/region.h"

namespace ingot::core::test {
namespace {

using loops::Expr;
using loops::ExprNode;

std::string exact(const std::vector<Dim>& index) {
  std::string text;
  for (const Dim& dim : index) text += dim.to_string() + ";";
  return text;
}

std::string exact(const Expr& node) {
  std::string text = fmt::format(
      "({} {} {} {} {} {} {} {} {} [{}]", static_cast<int>(node->kind), static_cast<int>(node->dtype),
      node->number, node->integer, static_cast<int>(node->unary), fmt::ptr(node->function),
      static_cast<int>(node->binary), node->buffer, node->stage, exact(node->index));
  for (const Expr& operand : node->operands) text += exact(operand);
  return text + ")";
}

// All that the kernel computes, with buffers and stages by number: no names that could be ambiguous.
std::string exact(const loops::Kernel& kernel) {
  std::string text;
  for (const loops::Buffer& buffer : kernel.buffers)
    text += fmt::format("{} {}\n", to_string(buffer.type), static_cast<int>(buffer.access));
  for (const loops::Loop& loop : kernel.parallel) text += loop.extent.to_string() + "\n";
  for (const loops::Stage& stage : kernel.stages) {
    for (const auto* loops : {&stage.loops, &stage.reduce}) {
      for (const loops::Loop& loop : *loops) text += loop.variable + loop.extent.to_string() + ",";
    }
    text +=
        fmt::format("{} {} {}\n", static_cast<int>(stage.combine), exact(stage.value),
                    stage.store ? fmt::format("{} {}", stage.store->buffer, exact(stage.store->index)) : "");
  }
  return text;
}

// A region of `depth` binary operations over three inputs, whose text often has the shape of another's.
RegionKernel random_region(std::mt19937& random, int depth) {
  Graph graph;
  std::vector<Value*> inputs;
  for (const char* name : {"x", "y", "z"}) inputs.push_back(graph.add_input(name, {DType::kF32, {4, 8}, {}}));
  const Op* const ops[] = {&ops::add, &ops::subtract, &ops::multiply};
  Value* value = inputs[random() % 3];
  std::vector<const Node*> nodes;
  const int row = static_cast<int>(random() % 8);  // where a softmax stands, if anywhere
  for (int i = 0; i < depth; ++i) {
    if (i == row) {
      value = graph.call(ops::softmax, {value});
      nodes.push_back(value->producer);
    }
    Value* other = inputs[random() % 3];
    const bool swapped = random() % 2 == 0;
    value = graph.call(*ops[random() % 3], swapped ? std::vector{other, value} : std::vector{value, other});
    nodes.push_back(value->producer);
  }
  const Value* const outputs[] = {value};
  return compose_region(nodes, outputs);
}

TEST(RegionText, IsThatOfOneKernelOnly) {
  std::mt19937 random(1);
  std::map<std::string, std::string> known;
  size_t repeated = 0;
  for (int i = 0; i < 4000; ++i) {
    const loops::Kernel kernel = random_region(random, 1 + i % 4).kernel;
    const std::string text = to_string(kernel), structure = exact(kernel);
    const auto [entry, is_new] = known.try_emplace(text, structure);
    repeated += is_new ? 0 : 1;
    ASSERT_EQ(entry->second, structure) << text;
  }
  EXPECT_GT(repeated, 100u);  // else nothing was compared
}

}  // namespace
}  // namespace ingot::core::test
