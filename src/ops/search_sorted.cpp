// SPDX-License-Identifier: Apache-2.0
// Binary search. The order of comparisons is torch's, which decides the result where a line is not sorted:
// NaN in it is larger than every value when its position is compared, but not when others are.
#include "ops/search_sorted.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kSearchOperands[] = {{"lines", DTypeSet::kNumeric}, {"values", DTypeSet::kNumeric}};

Types infer_search_sorted(const Node& node) {
  const TensorType &lines = node.operand_type(0), &values = node.operand_type(1);
  const int64_t steps = node.attributes<SearchSorted>().steps;
  require(lines.rank() > 0, node, "there must be a line to search in");
  require_same_dtype(node);
  if (lines.rank() > 1) {
    Shape expected = lines.shape;
    if (values.rank() == lines.rank()) expected.back() = values.shape.back();
    require_shape(node, 1, expected);
  }
  require(steps >= 0 && steps <= SearchSorted::kMostSteps, node, "there must be 0 to 48 steps");
  const auto size = lines.shape.back().constant();
  require(steps == 0 || size != 0, node, "searches in an empty line");
  require(!size || *size < int64_t{1} << steps || steps == SearchSorted::kMostSteps, node,
          "a line is too long for the number of steps");
  return {{DType::kI64, values.shape, {}}};
}

// start, end = 0, size
// repeat `steps` times:  middle = start + (end - start) / 2
//                        start, end = start < end && !(line[middle] >= value) ? middle + 1, end : start,
//                        middle
loops::Kernel lower_search_sorted(const Node& node) {
  const auto [right, steps] = node.attributes<SearchSorted>();
  const Shape& lines = node.operand_type(0).shape;
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  const Expr value = kernel.load(1, index), one = loops::integer_constant(DType::kI64, 1),
             zero = loops::integer_constant(DType::kI64, 0);
  Index at;
  if (lines.size() > 1) at.assign(index.begin(), index.end() - 1);
  Expr start = zero, end = loops::index_value(lines.back());
  for (int64_t step = 0; step < steps; ++step) {
    const Expr searches = below(start, end);
    const Expr middle = start + loops::binary(loops::Binary::kShiftRight, end - start, one);
    Index place = at;
    place.push_back(kernel.bind(loops::select(searches, middle, zero), lines.back()));
    const Expr element = kernel.load(0, place);
    const Expr reached = right ? above(element, value) : at_least(element, value);
    const Expr follows = both(searches, loops::unary(loops::Unary::kNot, reached));
    const Dim half = kernel.bind(loops::convert(DType::kI64, follows), 2);  // later steps depend on no load
    const Expr is_after = differs(loops::index_value(half), zero);
    start = loops::select(is_after, middle + 1, start);
    end = loops::select(is_after, end, middle);
  }
  kernel.store(index, start);
  return kernel.finish();
}

Samples search_sorted_samples() {
  return {sample({f32({5}), f32({3, batch()})}, SearchSorted{false, 3}),
          sample({f32({batch(), length()}), f32({batch(), 4})}, SearchSorted{true, 4}),
          sample({i64({2, 3, 8}), i64({2, 3, 2})}, SearchSorted{true, 4}),
          sample({f32({1}), f32({})}, SearchSorted{false, 1})};
}

}  // namespace

constinit const Op search_sorted = {
    .name = "search_sorted",
    .summary =
        "the position of each value in a sorted line (one, or one per row of values): that of the first "
        "element that is not smaller or, if `right`, larger; lines have fewer than 2^steps elements",
    .operands = kSearchOperands,
    .attributes = attribute_schema<SearchSorted>(),
    .infer = infer_search_sorted,
    .lower = lower_search_sorted,
    .samples = search_sorted_samples};

}  // namespace ingot::core::ops
