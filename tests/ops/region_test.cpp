// SPDX-License-Identifier: Apache-2.0
// Regions grow with their nodes, however often the steps of a chain read the one before.
#include "ops/region.h"

#include <gtest/gtest.h>

#include "loops/rewrite.h"
#include "ops/ops.h"

namespace ingot::core::test {
namespace {

int64_t expressions_in(const loops::Kernel& kernel) {
  int64_t count = 0;
  for (const loops::Stage& stage : kernel.stages) loops::visit(stage.value, [&](const auto&) { ++count; });
  return count;
}

// Each step is x * x + |x|, and the last one is behind a softmax if `has_row`.
int64_t expressions_of_chain(int steps, bool has_row) {
  Graph graph;
  Value* value = graph.add_input("x", {DType::kF32, {4, 8}, {}});
  std::vector<const Node*> nodes;
  const auto call = [&](const Op& op, const std::vector<Value*>& operands) {
    Value* result = graph.call(op, operands);
    nodes.push_back(result->producer);
    return result;
  };
  for (int step = 0; step < steps; ++step) {
    Value* square = call(ops::multiply, {value, value});
    value = call(ops::add, {square, call(ops::absolute, {value})});
  }
  if (has_row) value = call(ops::softmax, {value});
  const Value* const outputs[] = {value};
  return expressions_in(compose_region(nodes, outputs).kernel);
}

TEST(Region, GrowsWithTheStepsOfAChain) {
  for (const bool has_row : {false, true}) {
    const int64_t few = expressions_of_chain(10, has_row), more = expressions_of_chain(20, has_row);
    EXPECT_EQ(expressions_of_chain(30, has_row) - more, more - few) << has_row;
  }
}

}  // namespace
}  // namespace ingot::core::test
