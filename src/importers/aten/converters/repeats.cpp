// SPDX-License-Identifier: Apache-2.0
// Elements that are repeated as often as a tensor says.
#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/data_sizes.h"
#include "importers/aten/converters/terms.h"
#include "ops/assertion.h"
#include "ops/axis.h"
#include "ops/search_sorted.h"
#include "ops/size_condition.h"

namespace ingot::core::aten {
namespace {

// Position i as often as entry i of a list says: the first whose running sum is above each place.
core::Value* repeated(Call& call, core::Value* counts, const Dim& total) {
  core::Value* sums = emit(call, ops::cumulative_sum, {counts}, ops::Axis{0});
  // One more, so that there is always one to look at: no place is as large.
  core::Value* last = scalar(call.graph(), static_cast<double>(2 * kMostFound), DType::kI64);
  sums = concatenated(call, {sums, reshaped(call, last, {1})}, 0);
  const ops::SearchSorted attributes{true, halvings(call.graph(), sums->type.shape[0])};
  return emit(call, ops::search_sorted, {sums, counting(call, total)}, attributes);
}
Dim repeated_size(Call& call, const Term& counts, const Dim& recorded, const Dim& limit) {
  const Term are_valid = !(counts < 0.0);
  call.graph().add(ops::assert_true, {are_valid.value()}, ops::Assertion{"repeats can not be negative"});
  return bind_count(call, counts.reduce(ops::sum, {0}).value(), recorded, limit).size;
}
void repeated_indices(Call& call) {
  core::Value* repeats = call.tensor("repeats");
  call.require(repeats->type.rank() == 1, "repeats of other than one dim");
  const Term counts(call, converted(call.graph(), repeats, DType::kI64));
  const Dim limit = call.has("output_size") ? call.dim("output_size") : Dim(kMostFound);
  const Dim total = repeated_size(call, counts, recorded_size(call), limit);
  call.give(converted(call.graph(), repeated(call, counts.value(), total), call.result_meta().dtype));
}
// If the counts do not add up to the size that the caller gives, all positions are out of range, which fails
// the run.
core::Value* repeated_to(Call& call, const Term& counts, const Dim& total) {
  core::Graph& graph = call.graph();
  core::Value* fits =
      emit(call, ops::equal, {counts.reduce(ops::sum, {0}).value(), size_scalar(graph, total, DType::kI64)});
  const Dim& beyond = counts.value()->type.shape[0];
  return emit(call, ops::select,
              {fits, repeated(call, counts.value(), total), size_scalar(graph, beyond, DType::kI64)});
}
void repeated_elements(Call& call) {
  core::Value *x = call.tensor("self"), *repeats = call.tensor("repeats");
  call.require(repeats->type.rank() <= 1, "repeats of several dims");
  if (!call.has("dim") || x->type.rank() == 0) x = flattened(call, x);
  const size_t axis = call.has("dim") ? call.axis("dim", x->type.rank()) : 0;
  repeats = converted(call.graph(), repeats, DType::kI64);  // one count may be that of all
  const Term counts(call, expanded(call, repeats, {x->type.shape[axis]}));
  core::Value* index = nullptr;
  if (call.has("output_size")) {
    index = repeated_to(call, counts, call.dim("output_size"));
  } else {
    const Dim total = repeated_size(call, counts, recorded_size(call, axis), kMostFound);
    index = repeated(call, counts.value(), total);
  }
  call.give(emit(call, ops::take, {x, index}, ops::Axis{static_cast<int64_t>(axis)}));
}

constexpr Converter kRepeatsConverters[] = {
    {"aten.repeat_interleave.Tensor", repeated_indices, !kComposed, kBindsSizes},
    {"aten.repeat_interleave.self_Tensor", repeated_elements, !kComposed, kBindsSizes},
};

}  // namespace

std::span<const Converter> repeats_converters() { return kRepeatsConverters; }

}  // namespace ingot::core::aten
