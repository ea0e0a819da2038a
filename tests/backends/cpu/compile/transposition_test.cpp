// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/transposition.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ops/view.h"
#include "support/cpu_features.h"
#include "tests/backends/cpu/compile/template_runner.h"

namespace ingot::core::cpu {
namespace {

struct TranspositionCase {
  std::vector<int64_t> shape;
  std::vector<int> from, to;  // storage orders
};
void PrintTo(const TranspositionCase& c, std::ostream* out) {
  *out << sizes_text(c.shape) << " from " << sizes_text({c.from.begin(), c.from.end()}) << " to "
       << sizes_text({c.to.begin(), c.to.end()});
}

class Transposition : public testing::TestWithParam<std::tuple<TranspositionCase, const char*>> {};

Layout layout_of(const std::vector<int>& order) {
  return std::ranges::is_sorted(order) ? Layout{} : Layout::permutation(order);
}

// The same for elements of another width, whose values are their numbers in the storage of `c.from`.
template <typename Element>
void expect_elements_move(Graph& graph, Value* x, DType dtype, const TranspositionCase& c,
                          const Target& target, const SymbolValues& symbols) {
  TensorType type = x->type;
  type.dtype = dtype;
  Value* other = graph.add_input(std::string(name(dtype)), type);
  const Node* node = graph.add(ops::relayout, {other}, ops::Relayout{layout_of(c.to)});
  ASSERT_TRUE(supports_transposition(*node).yes);
  std::vector<HostBuffer> buffers{HostBuffer(other->type, symbols),
                                  HostBuffer(node->results[0]->type, symbols)};
  auto* from = reinterpret_cast<Element*>(buffers[0].data());
  const auto* to = reinterpret_cast<const Element*>(buffers[1].data());
  const std::vector<Dim> shape(c.shape.begin(), c.shape.end());
  const auto offset = [&](const TensorType& of, const std::vector<int64_t>& place) {
    const std::vector<Dim> index(place.begin(), place.end());
    return *storage_offset(of.layout, shape, index).constant();
  };
  for_each_index(c.shape, [&](const auto& place) {
    from[offset(type, place)] = static_cast<Element>(offset(type, place));
  });
  run_template(plan_transposition(*node, graph.symbols, target), symbols, buffers);
  for_each_index(c.shape, [&](const auto& place) {
    ASSERT_EQ(to[offset(node->results[0]->type, place)], static_cast<Element>(offset(type, place)))
        << testing::PrintToString(place);
  });
}

TEST_P(Transposition, MovesEachElement) {
  const auto& [c, level] = GetParam();
  if (!host_cpu_features().covers(parse_cpu_features(level)))
    GTEST_SKIP() << "this processor has no " << level;
  Target target;
  target.device = level;
  for (const bool symbolic : {false, true}) {
    Graph graph;
    SymbolValues symbols;
    Shape shape(c.shape.begin(), c.shape.end());
    for (size_t dim = 0; symbolic && dim < shape.size(); ++dim) {
      shape[dim] = Dim::symbol("s" + std::to_string(dim));
      symbols[shape[dim].symbol_name()] = c.shape[dim];
      graph.symbols[shape[dim].symbol_name()] = {.range = {0, 4096}};
    }
    Value* x = graph.add_input("x", {DType::kF32, shape, layout_of(c.from)});
    Node* node = graph.add(ops::relayout, {x}, ops::Relayout{layout_of(c.to)});
    ASSERT_TRUE(supports_transposition(*node).yes) << supports_transposition(*node).reason;
    const TemplateKernel plan = plan_transposition(*node, graph.symbols, target);
    std::vector<HostBuffer> buffers{random_buffer(x->type, symbols, 1),
                                    HostBuffer(node->results[0]->type, symbols)};
    run_template(plan, symbols, buffers);
    for_each_index(c.shape, [&](const std::vector<int64_t>& place) {
      ASSERT_EQ(buffers[1].at(place), buffers[0].at(place)) << testing::PrintToString(place);
    });
    expect_elements_move<uint16_t>(graph, x, DType::kBF16, c, target, symbols);
    expect_elements_move<uint64_t>(graph, x, DType::kI64, c, target, symbols);
  }
}

const TranspositionCase kTranspositionCases[] = {
    {{64, 64}, {1, 0}, {0, 1}},                    // a transposed matrix
    {{37, 19}, {0, 1}, {1, 0}},                    // of odd sizes
    {{8, 9}, {0, 1}, {1, 0}},                      // of one square and a remainder
    {{2, 24, 5, 7}, {0, 1, 2, 3}, {0, 2, 3, 1}},   // channels last: height and width are one run
    {{2, 24, 5, 7}, {0, 2, 3, 1}, {0, 1, 2, 3}},   // and back
    {{3, 11, 9, 13}, {0, 2, 1, 3}, {0, 3, 1, 2}},  // runs that are not adjacent
    {{9, 2, 10}, {1, 2, 0}, {1, 0, 2}},            // the outermost dim in between
    {{0, 16, 16}, {0, 1, 2}, {0, 2, 1}},           // nothing
};

INSTANTIATE_TEST_SUITE_P(Shapes, Transposition,
                         testing::Combine(testing::ValuesIn(kTranspositionCases),
                                          testing::Values("x86-64-v3", "x86-64-v4")),
                         template_test_name<TranspositionCase>);

struct BlockedCase {
  Shape shape;
  Layout from, to;
};

// Weights as a matmul or a convolution reads them, and back.
const BlockedCase kBlockedCases[] = {
    {{48, 40}, {}, Layout::blocked(std::vector{0, 1}, 0, 16)},
    {{16, 9}, {}, Layout::blocked(std::vector{0, 1}, 0, 16)},
    {{40, 48}, Layout::permutation(std::vector{1, 0}), Layout::blocked(std::vector{0, 1}, 1, 16)},
    {{32, 5, 3, 3}, {}, Layout::blocked(std::vector{0, 2, 3, 1}, 0, 8)},
    {{48, 40}, Layout::blocked(std::vector{0, 1}, 0, 16), {}},
    {{2, 32, 9, 7}, Layout::blocked(std::vector{0, 1, 2, 3}, 1, 16), {}},
    {{32, 24}, Layout::blocked(std::vector{0, 1}, 0, 16), Layout::blocked(std::vector{1, 0}, 1, 8)},
};

class BlockedTransposition : public testing::TestWithParam<std::tuple<BlockedCase, const char*, DType>> {};
void PrintTo(const BlockedCase& c, std::ostream* out) {
  *out << to_string(c.shape) << " from " << to_string(c.from) << " to " << to_string(c.to);
}

TEST_P(BlockedTransposition, MovesEachElementOfWholeBlocks) {
  const auto& [c, level, dtype] = GetParam();
  if (!host_cpu_features().covers(parse_cpu_features(level)))
    GTEST_SKIP() << "this processor has no " << level;
  Target target;
  target.device = level;
  Graph graph;
  Value* x = graph.add_input("x", {dtype, c.shape, c.from});
  const Node* node = graph.add(ops::relayout, {x}, ops::Relayout{c.to});
  ASSERT_TRUE(supports_transposition(*node).yes) << supports_transposition(*node).reason;
  std::vector<HostBuffer> buffers{random_buffer(x->type, {}, 1), HostBuffer(node->results[0]->type, {})};
  run_template(plan_transposition(*node, graph.symbols, target), {}, buffers);
  std::vector<int64_t> sizes;
  for (const Dim& dim : c.shape) sizes.push_back(*dim.constant());
  for_each_index(sizes, [&](const std::vector<int64_t>& place) {
    ASSERT_EQ(buffers[1].at(place), buffers[0].at(place)) << testing::PrintToString(place);
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, BlockedTransposition,
                         testing::Combine(testing::ValuesIn(kBlockedCases),
                                          testing::Values("x86-64-v3", "x86-64-v4"),
                                          testing::Values(DType::kF32, DType::kBF16)));

TEST(TranspositionTemplate, TakesWeightsForProducts) {
  const auto fits = [](Shape shape, int dim, int64_t block) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::kF32, std::move(shape)});
    const Layout to = Layout::blocked(std::vector{0, 1}, dim, block);
    return supports_transposition(*graph.add(ops::relayout, {x}, ops::Relayout{to})).yes;
  };
  EXPECT_TRUE(fits({48, 40}, 0, 16));
  EXPECT_FALSE(fits({50, 40}, 0, 16)) << "its last block is not whole";
  EXPECT_FALSE(fits({Dim::symbol("s"), 40}, 0, 16));
  EXPECT_FALSE(fits({40, 48}, 1, 16)) << "the innermost dim is unchanged";
}

TEST(TranspositionTemplate, LeavesWhatItDoesNotTurn) {
  const auto fits = [](DType dtype, const std::vector<int>& from, const std::vector<int>& to, Shape shape) {
    Graph graph;
    Value* x = graph.add_input("x", {dtype, std::move(shape), layout_of(from)});
    return supports_transposition(*graph.add(ops::relayout, {x}, ops::Relayout{layout_of(to)})).yes;
  };
  EXPECT_TRUE(fits(DType::kI32, {0, 1}, {1, 0}, {16, 16}));
  EXPECT_TRUE(fits(DType::kBF16, {0, 1}, {1, 0}, {16, 16}));
  EXPECT_TRUE(fits(DType::kF64, {0, 1}, {1, 0}, {16, 16}));
  EXPECT_FALSE(fits(DType::kI8, {0, 1}, {1, 0}, {16, 16}));
  EXPECT_FALSE(fits(DType::kF32, {0, 1, 2}, {1, 0, 2}, {16, 16, 16}));
  EXPECT_FALSE(fits(DType::kF32, {0, 1}, {1, 0}, {3, 16}));
}

}  // namespace
}  // namespace ingot::core::cpu
