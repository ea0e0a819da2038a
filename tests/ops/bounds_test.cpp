// SPDX-License-Identifier: Apache-2.0
// Positions that depend on sizes: if a graph's conditions hold, they are inside their operands.
#include "ops/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "evaluate/evaluate.h"
#include "ops/axis.h"
#include "ops/concat.h"
#include "ops/generate.h"
#include "ops/ops.h"
#include "ops/pool.h"
#include "ops/reshape.h"
#include "ops/view.h"
#include "support/error.h"

namespace ingot::core {
namespace {

constexpr int64_t kLargest = 9;

class RandomSizes {
 public:
  explicit RandomSizes(unsigned seed) : random_(seed) {}
  int64_t uniform(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  // A position: S and T are sizes of inputs.
  Dim position() {
    const Dim size = Dim::symbol(uniform(0, 1) == 0 ? "S" : "T");
    switch (uniform(0, 6)) {
      case 0:
        return uniform(-2, 5);
      case 1:
        return size;
      case 2:
        return size - Dim(uniform(-2, 5));
      case 3:
        return floor_divide(size, uniform(2, 3));
      case 4:
        return Dim::symbol("S") - Dim::symbol("T");
      case 5:
        return 2 * size - Dim(uniform(0, 4));
      default:
        return modulo(size, uniform(2, 4));
    }
  }
  template <typename Item>
  const Item& any(const std::vector<Item>& items) {
    return items[static_cast<size_t>(uniform(0, static_cast<int64_t>(items.size()) - 1))];
  }

 private:
  std::mt19937 random_;
};

// Inputs: f32[S,3] and f32[T,3].
struct Case {
  Graph graph;
  std::vector<SizeCheck> checks;
};

Value* node_of(Graph& graph, RandomSizes& random) {
  Value *x = graph.inputs()[0], *y = graph.inputs()[1];
  const auto slice = [&] {
    const Dim start = random.position(), end = random.uniform(0, 2) == 0 ? start + 1 : random.position();
    return ops::Slice{0, start, end, random.uniform(1, 2)};
  };
  switch (random.uniform(0, 7)) {
    case 0:
      return graph.call(ops::slice, {x}, slice());
    case 1: {
      const ops::Slice taken = slice();
      Value* source =
          graph.call(ops::slice, {y}, ops::Slice{0, 0, ceil_divide(taken.end - taken.start, taken.step), 1});
      return graph.call(ops::slice_scatter, {x, source}, taken);
    }
    case 2: {
      static const std::vector<std::string> kModes = {"constant", "reflect", "replicate", "circular"};
      return graph.call(ops::pad, {x},
                        ops::Pad{{random.position(), 0}, {random.position(), 0}, 1, random.any(kModes)});
    }
    case 3:
      return graph.call(ops::roll, {x}, ops::Roll{0, random.position()});
    case 4:
      return graph.call(ops::flip, {graph.call(ops::slice, {x}, slice())}, ops::Axes{{0}});
    case 5: {
      Value* index = graph.call(
          ops::full, {}, ops::Full{.integer = 1, .dtype = DType::kI64, .shape = {random.position(), 1}});
      return graph.call(ops::gather, {x, index}, ops::Axis{1});
    }
    case 6: {
      Value* index = graph.call(
          ops::full, {}, ops::Full{.integer = 2, .dtype = DType::kI64, .shape = {Dim::symbol("T"), 3}});
      return graph.call(ops::scatter_add, {x, index, y}, ops::Axis{1});
    }
    default: {
      Value* rows = graph.call(ops::reshape, {x}, ops::NewShape{{1, 3, Dim::symbol("S")}});
      return graph.call(
          ops::max_pool, {rows},
          ops::MaxPool{{random.uniform(1, 5)}, {random.uniform(1, 3)}, {0}, {1}, random.uniform(0, 1) == 0});
    }
  }
}

Case make_case(RandomSizes& random) {
  Case made;
  made.graph.symbols = {{"S", {.range = {0, kLargest}}}, {"T", {.range = {0, kLargest}}}};
  made.graph.add_input("x", {DType::kF32, {Dim::symbol("S"), 3}, {}});
  made.graph.add_input("y", {DType::kF32, {Dim::symbol("T"), 3}, {}});
  made.graph.outputs = {node_of(made.graph, random)};
  complete_checks(made.graph, made.checks);
  return made;
}

Tensor filled(std::vector<int64_t> shape) {
  Tensor tensor = make_tensor(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < tensor.elements(); ++i)
    reinterpret_cast<float*>(tensor.data.get())[i] = static_cast<float>(i);
  return tensor;
}

// Under AddressSanitizer an access outside of an operand ends the test.
TEST(Bounds, LetThroughOnlySizesThatLieInTheOperands) {
  RandomSizes random(7);
  int made = 0, ran = 0, refused = 0;
  for (int i = 0; i < 600; ++i) {
    std::optional<Case> sample;
    try {
      sample = make_case(random);
    } catch (const UserError&) {
      continue;  // wrong for all sizes
    }
    ++made;
    for (int k = 0; k < 12; ++k) {
      const SymbolValues sizes = {{"S", random.uniform(0, kLargest)}, {"T", random.uniform(0, kLargest)}};
      const auto holds = [&](const SizeCheck& check) { return evaluate(check.condition, sizes); };
      if (!std::ranges::all_of(sample->checks, holds)) {
        ++refused;
        continue;
      }
      ++ran;
      const std::vector<Tensor> inputs = {filled({sizes.at("S"), 3}), filled({sizes.at("T"), 3})};
      EXPECT_NO_THROW(evaluate(sample->graph, inputs, {}));
    }
  }
  EXPECT_GT(made, 300);
  EXPECT_GT(ran, 500);
  EXPECT_GT(refused, 500);
}

TEST(Bounds, HoldExactlyWhereASliceLiesInItsDim) {
  RandomSizes random(8);
  for (int i = 0; i < 300; ++i) {
    Graph graph;
    graph.symbols = {{"S", {.range = {0, kLargest}}}, {"T", {.range = {0, kLargest}}}};
    Value* x = graph.add_input("x", {DType::kF32, {Dim::symbol("S")}, {}});
    const ops::Slice slice{0, random.position(), random.position(), 1};
    try {
      graph.outputs = {graph.call(ops::slice, {x}, slice)};
    } catch (const UserError&) {
      continue;
    }
    std::vector<SizeCheck> checks;
    complete_checks(graph, checks);
    for (int64_t s = 0; s <= kLargest; ++s) {
      for (int64_t t = 0; t <= kLargest; ++t) {
        const SymbolValues sizes = {{"S", s}, {"T", t}};
        const int64_t start = evaluate(slice.start, sizes), end = evaluate(slice.end, sizes);
        const bool holds = std::ranges::all_of(
            checks, [&](const SizeCheck& check) { return evaluate(check.condition, sizes); });
        ASSERT_EQ(holds, 0 <= start && start <= end && end <= s)
            << slice.start.to_string() << ":" << slice.end.to_string() << " of " << s << ", T " << t;
      }
    }
  }
}

TEST(Bounds, AreNotAskedWhereRangesProveThem) {
  Graph graph;
  graph.symbols = {{"S", {.range = {3, 64}}}};
  const Dim size = Dim::symbol("S");
  Value* x = graph.add_input("x", {DType::kF32, {size, 3}, {}});
  x = graph.call(ops::slice, {x}, ops::Slice{0, floor_divide(size, 2), size, 1});
  x = graph.call(ops::slice, {x}, ops::Slice{0, 0, 1, 1});
  graph.outputs = {x};
  std::vector<SizeCheck> checks;
  complete_checks(graph, checks);
  EXPECT_EQ(checks.size(), 0u);
}

}  // namespace
}  // namespace ingot::core
