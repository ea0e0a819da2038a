// SPDX-License-Identifier: Apache-2.0
// Which nodes the backend calls slow, and the times that it predicts for them.
#include "backends/cpu/compile/speed.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/compile/backend.h"
#include "backends/cpu/compile/passes.h"
#include "ops/axis.h"
#include "ops/concat.h"
#include "ops/convolution.h"
#include "ops/fourier.h"
#include "ops/grid_sample.h"
#include "ops/matrix_attributes.h"
#include "ops/resize.h"
#include "ops/search_sorted.h"
#include "ops/select.h"
#include "ops/sort.h"
#include "ops/statistics.h"
#include "ops/view.h"
#include "tests/ops/sample_graph.h"

namespace ingot::core::cpu {
namespace {

using Answer = Support::Answer;

TensorType tensor(DType dtype, Shape shape) { return {dtype, std::move(shape), {}}; }

// A transposed convolution with strides and dilation, which has no remedy.
Node* dilated(Graph& graph, const Dim& images, int64_t size, int64_t channels = 32) {
  Value* x = graph.add_input("x", tensor(DType::kF32, {images, channels, size, size}));
  Value* weight = graph.add_input("w", tensor(DType::kF32, {channels, channels, 3, 3}));
  return graph.add(ops::convolution_transpose, {x, weight},
                   ops::ConvolutionTranspose{{2, 2}, {0, 0}, {0, 0}, {2, 2}, 1});
}

Node* product(Graph& graph, DType dtype) {
  Value* a = graph.add_input("a", tensor(dtype, {64, 64}));
  return graph.add(ops::matmul, {a, graph.add_input("b", tensor(dtype, {64, 64}))});
}

TEST(Speed, SlowNodesHaveAReasonAndBothTimes) {
  Graph graph;
  const Support support = judge_speed(*dilated(graph, 1, 28), {}, Target{});
  EXPECT_EQ(support.answer, Answer::kSlow);
  EXPECT_NE(support.reason, "");
  EXPECT_GT(support.peer_ns, 0);
  EXPECT_GT(support.own_ns, support.peer_ns);
}

// Of one matrix; `has_vectors`: not its eigenvalues alone.
double slowness_of_eigen(int64_t size, bool has_vectors) {
  Graph graph;
  Value* x = graph.add_input("x", tensor(DType::kF32, {size, size}));
  const Node* eigen = graph.add(ops::symmetric_eigen, {x}, ops::SymmetricEigen{false, has_vectors});
  const Support support = judge_speed(*eigen, {}, Target{});
  return support.answer == Answer::kSlow ? support.own_ns / support.peer_ns : 1;
}
TEST(Speed, LargeMatricesAreSlow) {
  EXPECT_EQ(slowness_of_eigen(4, true), 1);
  EXPECT_GT(slowness_of_eigen(64, true), 1);
  EXPECT_GT(slowness_of_eigen(384, true), slowness_of_eigen(64, true));
  EXPECT_GT(slowness_of_eigen(384, false), 1);
}
TEST(Speed, EveryOperatorHasAnAnswer) {
  for (const Op* op : ops::all_ops()) {
    if (op->samples == nullptr) continue;
    for (const Sample& sample : op->samples()) {
      const auto made = core::test::make_sample_node(*op, sample);
      EXPECT_NO_THROW(judge_speed(*made.node, made.symbols, Target{})) << op->name;
    }
  }
}

TEST(Speed, IsJudgedAtTypicalSizes) {
  Graph graph;
  const Node* node = dilated(graph, Dim::symbol("B"), 28);
  const Support few = judge_speed(*node, {{"B", 1}}, Target{}),
                many = judge_speed(*node, {{"B", 64}}, Target{});
  EXPECT_GT(many.own_ns, 32 * few.own_ns);
  EXPECT_EQ(judge_speed(*node, {{"B", 0}}, Target{}).answer, Answer::kFast);  // there is nothing to do
}

TEST(Speed, SmallNodesAreFast) {
  Graph graph;  // a call of the peer costs more
  EXPECT_EQ(judge_speed(*dilated(graph, 1, 1, 2), {}, Target{}).answer, Answer::kFast);
}

TEST(Speed, HalvesWhereTheProcessorMultipliesThem) {
  Graph graph;
  const auto widened = [&](std::string name) {
    Value* half = graph.add_input(std::move(name), tensor(DType::kBF16, {512, 512}));
    return graph.call(ops::convert, {half}, ops::Convert{DType::kF32});
  };
  const Node* node = graph.add(ops::matmul, {widened("a"), widened("b")});
  EXPECT_EQ(judge_speed(*node, {}, {.device = "x86-64-v4"}).answer, Answer::kFast);
  EXPECT_EQ(judge_speed(*node, {}, {.device = "x86-64-v4+bf16"}).answer, Answer::kSlow);
}

TEST(Speed, ProductsThatDoNotFillTheirTiles) {
  const auto grouped = [](int64_t channels, int64_t groups) {
    Graph graph;
    Value* x = graph.add_input("x", tensor(DType::kF32, {1, channels, 14, 14}));
    Value* weight = graph.add_input("w", tensor(DType::kF32, {channels, channels / groups, 3, 3}));
    const ops::Convolution attributes{{1, 1}, {1, 1}, {1, 1}, groups};
    return judge_speed(*graph.add(ops::convolution, {x, weight}, attributes), {}, Target{}).answer;
  };
  EXPECT_EQ(grouped(512, 32), Answer::kSlow);
  EXPECT_EQ(grouped(512, 128), Answer::kFast);
  EXPECT_EQ(grouped(512, 1), Answer::kFast);
}

TEST(Speed, ProductsOfTransposedOperands) {
  const auto answer = [](int64_t depth, int64_t rows, int64_t columns) {
    Graph graph;
    Value* a = graph.add_input("a", tensor(DType::kF32, {depth, rows}));
    Value* b = graph.add_input("b", tensor(DType::kF32, {depth, columns}));
    Value* rows_of_a = graph.call(ops::transpose, {a}, ops::Permutation{{1, 0}});
    return judge_speed(*graph.add(ops::matmul, {rows_of_a, b}), {}, Target{}).answer;
  };
  EXPECT_EQ(answer(1024, 64, 512), Answer::kSlow);  // a long depth for few rows
  EXPECT_EQ(answer(1024, 256, 512), Answer::kFast);
  EXPECT_EQ(answer(1024, 256, 128), Answer::kSlow);  // few products per element
  EXPECT_EQ(answer(64, 32, 32), Answer::kFast);      // a call of the peer costs more
}

TEST(Speed, ElementwiseFunctionsByDtype) {
  const auto answer = [](const Op& op, DType dtype) {
    Graph graph;
    Value* x = graph.add_input("x", tensor(dtype, {128, 3072}));
    return judge_speed(*graph.add(op, {x}), {}, Target{}).answer;
  };
  EXPECT_EQ(answer(ops::square_root, DType::kF64), Answer::kSlow);
  EXPECT_EQ(answer(ops::square_root, DType::kF32), Answer::kFast);
  EXPECT_EQ(answer(ops::exp, DType::kF64), Answer::kSlow);
  EXPECT_EQ(answer(ops::acos, DType::kF32), Answer::kFast);
  EXPECT_EQ(answer(ops::log2, DType::kF32), Answer::kSlow);
  EXPECT_EQ(answer(ops::log2, DType::kF16), Answer::kFast);
  EXPECT_EQ(answer(ops::tan, DType::kBF16), Answer::kFast);
  EXPECT_EQ(answer(ops::exp, DType::kF32), Answer::kFast);
}

TEST(Speed, Routines) {
  const auto answer = [](DType dtype, int64_t length) {
    Graph graph;
    Value* x = graph.add_input("x", tensor(dtype, {2, length}));
    return judge_speed(*graph.add(ops::sort, {x}, ops::Sort{.axis = 1}), {}, Target{}).answer;
  };
  EXPECT_EQ(answer(DType::kI64, 100000), Answer::kFast);
  EXPECT_EQ(answer(DType::kF32, 100000), Answer::kFast);
  EXPECT_EQ(answer(DType::kI64, 100), Answer::kFast);
}

TEST(Speed, MatricesBySizeAndDtype) {
  const auto answer = [](const Op& op, DType dtype, int64_t size) {
    Graph graph;
    Value* x = graph.add_input("x", tensor(dtype, {2, size, size}));
    Value* scales = graph.add_input("scales", tensor(dtype, {2, size}));
    Node* node = &op == &ops::householder_product ? graph.add(op, {x, scales}) : graph.add(op, {x});
    return judge_speed(*node, {}, Target{}).answer;
  };
  EXPECT_EQ(answer(ops::householder_product, DType::kF64, 512), Answer::kFast);
  EXPECT_EQ(answer(ops::householder_product, DType::kF32, 512), Answer::kSlow);
  EXPECT_EQ(answer(ops::householder_qr, DType::kF32, 512), Answer::kSlow);
  EXPECT_EQ(answer(ops::householder_qr, DType::kF64, 512), Answer::kFast);
  EXPECT_EQ(answer(ops::householder_qr, DType::kF32, 4), Answer::kFast);
}

TEST(Speed, JoinsSingleIntegersByMaskedStores) {
  const auto answer = [](DType dtype, const char* device) {
    Graph graph;
    Value* x = graph.add_input("x", tensor(dtype, {128 * 3072, 1}));
    return judge_speed(*graph.add(ops::concat, {x, x}, ops::Axis{1}), {}, {.device = device}).answer;
  };
  for (const DType dtype : {DType::kI32, DType::kI64}) {
    EXPECT_EQ(answer(dtype, "x86-64-v4"), Answer::kFast);
    EXPECT_EQ(answer(dtype, "x86-64-v3"), Answer::kSlow);
  }
  EXPECT_EQ(answer(DType::kF32, "x86-64-v3"), Answer::kFast);
}

TEST(Speed, TransformsByTheFactorsOfTheirLength) {
  const auto answer = [](int64_t length) {
    Graph graph;
    Value *x = graph.add_input("x", tensor(DType::kF32, {512, length})),
          *roots = graph.add_input("roots", tensor(DType::kF32, {2, length}));
    return judge_speed(*graph.add(ops::real_fourier, {x, roots}, ops::RealFourier{1, 1}), {}, Target{})
        .answer;
  };
  for (const int64_t length : {400, 1000, 2048}) EXPECT_EQ(answer(length), Answer::kFast) << length;
  for (const int64_t length : {343, 2 * 337, 1009}) EXPECT_EQ(answer(length), Answer::kSlow) << length;
}

TEST(Speed, SamplesAlongChannels) {
  const auto answer = [](int64_t channels, const char* mode, DType dtype, const char* device) {
    Graph graph;
    Value* x = graph.add_input("x", tensor(dtype, {1, channels, 64, 64}));
    Value* grid = graph.add_input("grid", tensor(dtype, {1, 64, 64, 2}));
    const Node* node = graph.add(ops::grid_sample, {x, grid}, ops::GridSample{mode, "zeros", false});
    return judge_speed(*node, {}, {.device = device}).answer;
  };
  for (const char* device : {"x86-64-v3", "x86-64-v4"}) {
    for (const char* mode : {"bilinear", "nearest", "bicubic"}) {
      EXPECT_EQ(answer(16, mode, DType::kF32, device), Answer::kFast) << mode << " " << device;
      EXPECT_EQ(answer(16, mode, DType::kBF16, device), Answer::kFast) << mode << " " << device;
      EXPECT_EQ(answer(33, mode, DType::kF16, device), Answer::kFast) << mode << " " << device;
      EXPECT_EQ(answer(15, mode, DType::kF32, device), Answer::kSlow) << mode << " " << device;
      EXPECT_EQ(answer(16, mode, DType::kF64, device), Answer::kSlow) << mode << " " << device;
    }
  }
}

TEST(Speed, InterpolatesAlongChannels) {
  const auto answer = [](int64_t channels, DType dtype, const char* device) {
    Graph graph;
    Value* x = graph.add_input("x", tensor(dtype, {1, channels, 64, 64}));
    const Node* node = graph.add(ops::resize_linear, {x}, ops::Resize{{512, 512}});
    return judge_speed(*node, {}, {.device = device}).answer;
  };
  for (const char* device : {"x86-64-v3", "x86-64-v4"}) {
    EXPECT_EQ(answer(24, DType::kF32, device), Answer::kFast) << device;
    EXPECT_EQ(answer(24, DType::kBF16, device), Answer::kFast) << device;
    EXPECT_EQ(answer(150, DType::kF32, device), Answer::kFast) << device;
    EXPECT_EQ(answer(13, DType::kF32, device), Answer::kSlow) << device;
    EXPECT_EQ(answer(24, DType::kF64, device), Answer::kSlow) << device;
  }
  EXPECT_EQ(answer(21, DType::kF32, "x86-64-v3"), Answer::kSlow);
  EXPECT_EQ(answer(21, DType::kF32, "x86-64-v4"), Answer::kFast);
  EXPECT_EQ(answer(3, DType::kF16, "x86-64-v3"), Answer::kSlow);
  EXPECT_EQ(answer(3, DType::kF16, "x86-64-v4"), Answer::kFast);
}

TEST(Speed, ScansOfRows) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI64}) {
    for (const Op* op : {&ops::cumulative_sum, &ops::cumulative_product, &ops::cumulative_maximum}) {
      Graph graph;
      Value* x = graph.add_input("x", tensor(dtype, {128, 3072}));
      EXPECT_EQ(judge_speed(*graph.add(*op, {x}, ops::Axis{1}), {}, Target{}).answer, Answer::kFast);
    }
  }
}

TEST(Speed, Scatters) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kI32}) {
    for (const Shape& shape : {Shape{100000}, Shape{1000, 100}}) {
      Graph graph;
      Value* sums = graph.add_input("sums", tensor(dtype, shape));
      Value* indices = graph.add_input("indices", tensor(DType::kI64, shape));
      Value* addends = graph.add_input("addends", tensor(dtype, shape));
      const Node& node = *graph.add(ops::scatter_add, {sums, indices, addends}, ops::Axis{0});
      EXPECT_EQ(judge_speed(node, {}, Target{}).answer, Answer::kFast);
    }
  }
}

TEST(Speed, Functions) {
  const auto answer = [](const Op& op, DType dtype, int64_t size) {
    Graph graph;
    return judge_speed(*graph.add(op, {graph.add_input("x", tensor(dtype, {size}))}), {}, Target{}).answer;
  };
  EXPECT_EQ(answer(ops::erfc, DType::kF32, 1000000), Answer::kSlow);
  EXPECT_EQ(answer(ops::erfc, DType::kF64, 1000000), Answer::kSlow);
  EXPECT_EQ(answer(ops::erfc, DType::kF32, 1000), Answer::kFast);
  EXPECT_EQ(answer(ops::sin, DType::kF32, 1000000), Answer::kFast);
  EXPECT_EQ(answer(ops::atan, DType::kF64, 1000000), Answer::kFast);
  EXPECT_EQ(answer(ops::exp, DType::kF32, 1000000), Answer::kFast);
}

TEST(Speed, MovesAlongRows) {
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32, DType::kI64}) {
    Graph graph;
    Value* x = graph.add_input("x", tensor(dtype, {4096, 256}));
    const Node* moves[] = {
        graph.add(ops::concat, {x, x}, ops::Axis{1}), graph.add(ops::flip, {x}, ops::Axes{{1}}),
        graph.add(ops::roll, {x}, ops::Roll{1, 7}), graph.add(ops::triangle, {x}, ops::Triangle{})};
    for (const Node* node : moves)
      EXPECT_EQ(judge_speed(*node, {}, Target{}).answer, Answer::kFast) << node->op->name << name(dtype);
  }
}

TEST(Speed, NormsOfRowsOfBF16) {
  const auto answer = [](DType dtype, double order, int64_t axis) {
    Graph graph;
    Value* x = graph.add_input("x", tensor(dtype, {1024, 1024}));
    return judge_speed(*graph.add(ops::norm, {x}, ops::Norm{order, {axis}}), {}, Target{}).answer;
  };
  EXPECT_EQ(answer(DType::kBF16, 2, 1), Answer::kSlow);
  EXPECT_EQ(answer(DType::kBF16, 2, 0), Answer::kFast);
  EXPECT_EQ(answer(DType::kBF16, 1, 1), Answer::kFast);
  EXPECT_EQ(answer(DType::kF32, 2, 1), Answer::kFast);
}

TEST(Speed, SearchesOfAnyLength) {
  const auto answer = [](const Dim& size, int64_t steps) {
    Graph graph;
    Value* line = graph.add_input("line", tensor(DType::kF32, {size}));
    Value* values = graph.add_input("values", tensor(DType::kF32, {100000}));
    const Node* node = graph.add(ops::search_sorted, {line, values}, ops::SearchSorted{false, steps});
    return judge_speed(*node, {{"S", 1000}}, Target{}).answer;
  };
  EXPECT_EQ(answer(1000, 10), Answer::kFast);
  EXPECT_EQ(answer(Dim::symbol("S"), 12), Answer::kFast);
  EXPECT_EQ(answer(Dim::symbol("S"), 48), Answer::kSlow);
}

TEST(Speed, NodesWithATemplate) {
  for (const DType dtype : {DType::kF32, DType::kI64}) {
    Graph graph;
    EXPECT_EQ(judge_speed(*product(graph, dtype), {}, Target{}).answer, Answer::kFast) << name(dtype);
  }
}

// The dtype in which a product is computed after the passes of this backend.
DType dtype_of_product(DType dtype) {
  Graph graph;
  graph.outputs = {product(graph, dtype)->results[0]};
  Rewrites all;
  for (const Pass& pass : own_passes(Target{}))
    if (pass.stage == Stage::kAdapt) graph = std::get<RewritePass>(pass.run)(std::move(graph), all);
  const auto is_product = [](const auto& node) { return node->op == &ops::matmul; };
  return (*std::ranges::find_if(graph.nodes(), is_product))->results[0]->type.dtype;
}

TEST(Speed, HalvesAreComputedInF32AndThenFast) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    Graph graph;
    EXPECT_EQ(judge_speed(*product(graph, dtype), {}, Target{}).answer, Answer::kSlow);
    EXPECT_EQ(dtype_of_product(dtype), DType::kF32);
  }
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kI64}) EXPECT_EQ(dtype_of_product(dtype), dtype);
}

TEST(Speed, BelowTheLevelOfTemplatesNothingIsCalledSlow) {
  Graph graph;
  Target target;
  target.level = 2;
  EXPECT_EQ(judge_speed(*dilated(graph, 1, 28), {}, target).answer, Answer::kFast);
}

}  // namespace
}  // namespace ingot::core::cpu
