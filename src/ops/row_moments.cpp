// SPDX-License-Identifier: Apache-2.0
// Moments of parts of rows, and the mean and deviation of rows from them: T. Chan, G. Golub and R. LeVeque,
// "Algorithms for computing the sample variance", 1983.
#include "ops/row_moments.h"

#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

enum : int64_t { kMean, kSquares, kMoments };  // of a part

constexpr Operand kRowOperands[] = {{"x", DTypeSet::kFloating}};
constexpr Operand kMomentOperands[] = {{"moments", DTypeSet::kFloating}};

Types infer_moments(const Node& node) {
  const TensorType& x = node.operand_type(0);
  require(x.rank() >= 1, node, "x must have at least one dim");
  require(bit_width(x.dtype) <= bit_width(DType::kF32), node, "x must have at most 32 bits, as its moments");
  const auto size = x.shape.back().constant();
  require(size && *size > 0 && *size % kMomentNeighbours == 0, node,
          "the last dim of x must be a constant multiple of 32");
  Shape shape(x.shape.begin(), x.shape.end() - 1);
  shape.push_back(*size / kMomentNeighbours);
  shape.push_back(kMoments);
  return {{DType::kF32, std::move(shape), {}}};
}

Types infer_statistic(const Node& node) {
  const TensorType& moments = node.operand_type(0);
  require(moments.rank() >= 2 && moments.dtype == DType::kF32 && moments.shape.back() == Dim(kMoments), node,
          "moments must be f32[..., parts, 2]");
  const auto parts = moments.shape[moments.rank() - 2].constant();
  require(parts && *parts > 0 && *parts <= kMostParts, node,
          "the number of parts must be a constant up to 64");
  Shape shape(moments.shape.begin(), moments.shape.end() - 2);
  shape.push_back(1);
  return {{DType::kF32, std::move(shape), {}}};
}

loops::Kernel lower_moments(const Node& node) {
  KernelBuilder builder(node);
  const Shape& shape = node.results[0]->type.shape;
  const Index part = builder.parallel(Shape(shape.begin(), shape.end() - 1));
  const StageLoops means = builder.loops({kMomentNeighbours}), squares = builder.loops({kMomentNeighbours});
  const auto value = [&](const Dim& neighbour) {
    Index index = part;
    index.back() = part.back() * Dim(kMomentNeighbours) + neighbour;
    return loops::convert(DType::kF32, builder.load(0, index));
  };
  const Expr sum = builder.reduce("sum", loops::Combine::kAdd, means, value(means.index[0]));
  const Expr mean = builder.scalar("mean", sum / static_cast<double>(kMomentNeighbours));
  const Expr distance = value(squares.index[0]) - mean;
  const Expr square = builder.reduce("squares", loops::Combine::kAdd, squares, distance * distance);
  const StageLoops out = builder.loops({kMoments});
  Index index = part;
  index.push_back(out.index[0]);
  const Expr is_mean =
      equal_to(loops::index_value(out.index[0]), loops::integer_constant(DType::kI64, kMean));
  builder.store(index, loops::select(is_mean, mean, square), out);
  return builder.finish();
}

// The moments of a row, which every element of the result reads: fused into what reads the result.
struct MomentsOfRow {
  KernelBuilder builder;
  Index index;
  int64_t parts;

  explicit MomentsOfRow(const Node& node)
      : builder(node),
        index(builder.parallel(node.results[0]->type.shape)),
        parts(*node.operand_type(0).shape[node.operand_type(0).rank() - 2].constant()) {}

  Expr at(int64_t part, int64_t moment) const {
    Index place(index.begin(), index.end() - 1);
    place.insert(place.end(), {Dim(part), Dim(moment)});
    return builder.load(0, place);
  }
  Expr mean() const {
    Expr sum = at(0, kMean);
    for (int64_t part = 1; part < parts; ++part) sum = sum + at(part, kMean);
    return sum / static_cast<double>(parts);
  }
};

loops::Kernel lower_row_mean(const Node& node) {
  MomentsOfRow row(node);
  row.builder.store(row.index, row.mean());
  return row.builder.finish();
}

loops::Kernel lower_row_scale(const Node& node) {
  MomentsOfRow row(node);
  const auto attributes = node.attributes<RowScale>();
  const Expr center = attributes.centered ? row.mean() : loops::constant(DType::kF32, 0);
  Expr squares = loops::constant(DType::kF32, 0);
  for (int64_t part = 0; part < row.parts; ++part) {
    const Expr distance = row.at(part, kMean) - center;
    squares =
        squares + (row.at(part, kSquares) + distance * distance * static_cast<double>(kMomentNeighbours));
  }
  const Expr variance = squares / static_cast<double>(row.parts * kMomentNeighbours);
  row.builder.store(row.index, compute(functions::reciprocal_square_root, variance + attributes.epsilon));
  return row.builder.finish();
}

Samples moments_samples() { return {sample({f32({batch(), length(), 64})}), sample({f32({3, 32})})}; }
Samples mean_samples() {
  return {sample({f32({batch(), length(), 3, 2}, 0, 2)}), sample({f32({1, 2}, 0, 2)})};
}
Samples scale_samples() {
  return {sample({f32({batch(), length(), 3, 2}, 0, 2)}, RowScale{1e-5, true}),
          sample({f32({4, 1, 2}, 0, 2)}, RowScale{1e-3, false})};
}

}  // namespace

bool is_row_statistic(const Node& node) { return node.op == &row_mean || node.op == &row_scale; }

constinit const Op row_moments = {
    .name = "row_moments",
    .summary = "the mean of each 32 neighbours of a row, and the sum of squares of their distances from it",
    .operands = kRowOperands,
    .traits = Trait::kReduction,
    .infer = infer_moments,
    .lower = lower_moments,
    .samples = moments_samples};

constinit const Op row_mean = {.name = "row_mean",
                               .summary = "the mean of a row from the moments of its parts",
                               .operands = kMomentOperands,
                               .infer = infer_statistic,
                               .lower = lower_row_mean,
                               .samples = mean_samples};

constinit const Op row_scale = {
    .name = "row_scale",
    .summary = "1 / sqrt(variance + epsilon) of a row, or of its mean square, from the moments of its parts",
    .operands = kMomentOperands,
    .attributes = attribute_schema<RowScale>(),
    .infer = infer_statistic,
    .lower = lower_row_scale,
    .samples = scale_samples};

}  // namespace ingot::core::ops
