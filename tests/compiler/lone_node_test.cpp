// SPDX-License-Identifier: Apache-2.0
#include "compiler/lone_node.h"

#include <gtest/gtest.h>

#include "ops/model_source.h"
#include "ops/ops.h"

namespace ingot::core {
namespace {

Dim symbol(const char* name) { return Dim::symbol(name); }

TensorType f32(Shape shape) { return {DType::kF32, std::move(shape), {}}; }

// x * y + x over the symbols `a` and `b`, of which only `a` is a batch.
struct Product {
  Product(const char* a, const char* b, const char* name) {
    graph.symbols = {{a, {.range = {1, 16}, .typical = 4}}, {b, {.range = {1, 512}}}, {"unused", {}}};
    Value* x = graph.add_input(std::string("x") + name, f32({symbol(a), symbol(b), 8}));
    Value* y = graph.add_input(std::string("y") + name, f32({symbol(b), 8}));
    product = graph.call(ops::multiply, {x, y})->producer;
    square = graph.call(ops::multiply, {x, x})->producer;
    graph.outputs = {product->results[0], square->results[0]};
  }
  Graph graph;
  Node *product, *square;
};

TEST(LoneNode, HasATextWithoutNames) {
  const Product first("B", "S", "1"), second("s77", "s12", "2"), third("A", "Z", "3");
  const std::string text = isolate(*first.product, first.graph.symbols).text();
  EXPECT_EQ(isolate(*second.product, second.graph.symbols).text(), text);
  EXPECT_EQ(isolate(*third.product, third.graph.symbols).text(), text);
  EXPECT_EQ(text.find("unused"), std::string::npos);
  EXPECT_NE(text.find("typical 4"), std::string::npos);
}

TEST(LoneNode, SeesWhichOperandsAreOne) {
  const Product product("B", "S", "");
  EXPECT_NE(isolate(*product.square, product.graph.symbols).text(),
            isolate(*product.product, product.graph.symbols).text());
}

TEST(LoneNode, KnowsWhereItsValuesStand) {
  const Product product("s2", "s1", "");
  const LoneNode lone = isolate(*product.product, product.graph.symbols);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(lone.around.values[lone.positions.at(lone.node->operands[i])], product.product->operands[i]);
  EXPECT_EQ(lone.around.values[lone.positions.at(lone.node->results[0])], product.product->results[0]);
  EXPECT_EQ(substitute(lone.node->results[0]->type.shape[0], lone.around.symbols), symbol("s2"));
}

// A backend may prefetch weights and states; which one it is must not matter.
TEST(LoneNode, KeepsWeightsAndStatesApartFromOtherOperands) {
  const auto text_of = [](const Op* op, int64_t number) {
    Graph graph;
    Value* x = graph.add_input("x", f32({4}));
    const ops::ModelSource source{.name = "w" + std::to_string(number), .shape = {4}, .source = number};
    Value* y = op != nullptr ? graph.call(*op, {}, source) : graph.add_input("y", f32({4}));
    const LoneNode lone = isolate(*graph.call(ops::multiply, {x, y})->producer, graph.symbols);
    const Node* producer = lone.node->operands[1]->producer;
    EXPECT_EQ(producer == nullptr ? nullptr : producer->op, op);
    return lone.text();
  };
  EXPECT_EQ(text_of(&ops::weight, 1), text_of(&ops::weight, 2));
  EXPECT_EQ(text_of(&ops::state, 1), text_of(&ops::state, 2));
  EXPECT_NE(text_of(&ops::weight, 1), text_of(nullptr, 0));
  EXPECT_NE(text_of(&ops::state, 1), text_of(nullptr, 0));
  EXPECT_NE(text_of(&ops::state, 1), text_of(&ops::weight, 1));
}

}  // namespace
}  // namespace ingot::core
