// SPDX-License-Identifier: Apache-2.0
// Bags of table rows, and counts of values in bins.
#include <limits>

#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/terms.h"
#include "ops/assertion.h"
#include "ops/axis.h"
#include "ops/sort.h"

namespace ingot::core::aten {
namespace {

enum Mode : int64_t { kSum, kMean, kMax };  // torch's values

// Which bag each index is in: the last one that begins at its position or before.
Term bag_of_each(Call& call, const Dim& count) {
  core::Value* offsets = call.tensor("offsets");
  const Term place(call, unsqueezed(call, counting(call, count, 1, offsets->type.dtype), 1));
  const Term begun = Term(call, emit(call, ops::less_equal, {offsets, place})).to(DType::kI64);
  return begun.reduce(ops::sum, {1}) - 1;
}

// [rows, width] summed or compared into [bags, width].
core::Value* gathered(Call& call, core::Value* rows, const Term& bag, const Dim& bags, bool compares) {
  core::Value* index = expanded(call, unsqueezed(call, bag, 1), rows->type.shape);
  core::Value* zeros = filled(call, {bags, extent(call, rows, 1)}, 0, rows->type.dtype);
  if (!compares) return emit(call, ops::scatter_add, {zeros, index, rows}, ops::Axis{0});
  return emit(call, ops::scatter_reduce, {zeros, index, rows},
              ops::ScatterReduce{.axis = 0, .reduce = "amax", .include_self = false});
}

// The index to ignore. `kFromEnd`: negative ones count from the end, and None means none; otherwise negative
// means none.
template <bool kFromEnd>
std::optional<Dim> padding_of(Call& call, const Dim& rows) {
  if (!call.has("padding_idx")) return std::nullopt;
  const int64_t padding = call.integer("padding_idx");
  if (padding >= 0) return Dim(padding);
  return kFromEnd ? std::optional(rows + padding) : std::nullopt;
}

template <bool kFromEnd>
void embedding_bag(Call& call) {
  core::Value *table = call.tensor("weight"), *indices = call.tensor("indices");
  if (indices->type.rank() != 1) call.refuse("indices that are not a vector");
  call.require(table->type.rank() == 2, "a table of unexpected rank");
  const Shape& result_shape = call.result_meta().shape;
  call.require(result_shape.size() == 2, "a result of unexpected rank");
  const Dim count = indices->type.shape[0], bags = result_shape[0];
  const Mode mode = static_cast<Mode>(call.integer("mode"));
  Term rows(call, emit(call, ops::take, {table, indices}, ops::Axis{0}));
  if (core::Value* scale = call.optional_tensor("per_sample_weights"))
    rows = rows * Term(call, unsqueezed(call, scale, 1));
  Term bag = bag_of_each(call, count);
  if (const auto padding =
          padding_of<kFromEnd>(call, extent(call, table, 0))) {  // into a bag after the others
    const Term skipped(
        call, emit(call, ops::equal, {indices, size_scalar(call.graph(), *padding, indices->type.dtype)}));
    bag = skipped.choose({call, size_scalar(call.graph(), bags, DType::kI64)}, bag);
  }
  const auto in_bags = [&](core::Value* values) {
    core::Value* all = gathered(call, values, bag, bags + 1, mode == kMax);
    return Term(call, sliced(call, all, 0, 0, bags));
  };
  const Term result = in_bags(rows);
  if (mode != kMean) return call.give(0, result);
  call.give(0, result / in_bags(filled(call, {count, 1}, 1, rows.dtype())).apply(ops::maximum, 1));
}

// Counts of equal bins from `min` to `max`, or from the minimum to the maximum if both are equal.
// Equal limits stand for the data's own, and those of equal data for one below and one above.
std::pair<Term, Term> range_of_histogram(Call& call, const Term& flat) {
  const double low = call.number("min"), high = call.number("max");
  if (low != high) return {flat.constant(low), flat.constant(high)};
  call.require(range_of(flat.shape()[0], call.graph().symbols).min > 0, "data that may be empty");
  const Term least = flat.reduce(ops::reduce_minimum, {0}), most = flat.reduce(ops::reduce_maximum, {0});
  const Term is_finite = (least - most).apply(ops::absolute) < std::numeric_limits<double>::infinity();
  call.graph().add(ops::assert_true, {is_finite},
                   ops::Assertion{"histc: the range of the data is not finite"});
  const Term is_point = least.apply(ops::equal, most);
  return {is_point.choose(least - 1.0, least), is_point.choose(most + 1.0, most)};
}
void histogram(Call& call) {
  const Term x = operand_term(call, "self");
  if (!is_floating(x.dtype())) call.refuse("a histogram of integers");
  const int64_t bins = call.integer("bins");
  call.require(bins > 0, "a histogram without bins");
  const Dim count = element_count((static_cast<core::Value*>(x))->type);
  const Term flat(call, reshaped(call, x, {count}));
  if (count == Dim(0)) return call.give(filled(call, {bins}, 0, x.dtype()));
  const auto [least, most] = range_of_histogram(call, flat);
  const Term inside = flat.apply(ops::greater_equal, least) && flat.apply(ops::less_equal, most);
  const Term place = ((flat - least) * static_cast<double>(bins) / (most - least)).apply(ops::floor);
  const Term bounded =
      inside.choose(place.apply(ops::minimum, static_cast<double>(bins) - 1), place.constant(0));
  core::Value* counts =
      emit(call, ops::scatter_add,
           {filled(call, {bins}, 0, x.dtype()), bounded.to(DType::kI64), inside.to(x.dtype())}, ops::Axis{0});
  call.give(counts);
}

constexpr Converter kBagConverters[] = {
    {"aten._embedding_bag.default", embedding_bag<false>},
    {"aten._embedding_bag_forward_only.default", embedding_bag<false>},
    {"aten.embedding_bag.default", embedding_bag<false>},
    {"aten.embedding_bag.padding_idx", embedding_bag<true>},
    {"aten.histc.default", histogram},
};

}  // namespace

std::span<const Converter> bag_converters() { return kBagConverters; }

}  // namespace ingot::core::aten
