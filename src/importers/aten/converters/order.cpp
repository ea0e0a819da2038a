// SPDX-License-Identifier: Apache-2.0
// Sorting, order statistics, running extremes, and sorted search.
#include <algorithm>
#include <bit>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "importers/aten/converters/terms.h"
#include "ops/axis.h"
#include "ops/search_sorted.h"
#include "ops/sort.h"
#include "ops/statistics.h"

namespace ingot::core::aten {
namespace {

// Values and indices along one axis. A tensor without dims counts as a line of one element.
struct Line {
  core::Value* x;
  int64_t axis;
  bool is_scalar;
  Line(Call& call, core::Value* given, std::optional<size_t> which = std::nullopt)
      : x(given->type.rank() == 0 ? reshaped(call, given, {1}) : given),
        axis(static_cast<int64_t>(which ? *which : call.axis("dim", given->type.rank()))),
        is_scalar(given->type.rank() == 0) {}
  core::Value* as_given(Call& call, core::Value* value) const {
    return is_scalar ? reshaped(call, value, {}) : value;
  }
  const Dim& size() const { return x->type.shape[static_cast<size_t>(axis)]; }
};

core::Node* sorted(Call& call, const Line& line, bool descending) {
  return call.graph().add(ops::sort, {line.x}, ops::Sort{line.axis, descending});
}
void sort(Call& call) {
  const Line line(call, call.tensor("self"));
  const core::Node* node = sorted(call, line, call.flag("descending"));
  call.give(0, line.as_given(call, node->results[0]));
  call.give(1, line.as_given(call, node->results[1]));
}
void top_k(Call& call) {
  const Line line(call, call.tensor("self"));
  const core::Node* node =
      call.graph().add(ops::top_k, {line.x}, ops::TopK{line.axis, call.integer("k"), call.flag("largest")});
  for (size_t i = 0; i < 2; ++i) {
    core::Value* result = node->results[i];
    call.give(i, line.is_scalar && call.integer("k") == 1 ? line.as_given(call, result) : result);
  }
}

// Gives a value and its index, one per line: the axis is removed, or kept with size 1.
void give_selected(Call& call, const Line& line, std::span<core::Value* const> results) {
  const bool keeps = call.has("keepdim") && call.flag("keepdim") && !line.is_scalar;
  for (size_t i = 0; i < results.size(); ++i)
    call.give(i, keeps ? results[i] : without_axes(call, results[i], {line.axis}));
}
void kth_value(Call& call) {
  const Line line(call, call.tensor("self"));
  const Dim rank = call.dim("k") - 1;
  if (const auto known = rank.constant()) {
    const ops::KthValue attributes{line.axis, *known};
    return give_selected(call, line, call.graph().add(ops::kth_value, {line.x}, attributes)->results);
  }
  std::vector<core::Value*> results = sorted(call, line, false)->results;
  for (core::Value*& result : results)
    result = sliced(call, result, static_cast<size_t>(line.axis), rank, rank + 1);
  give_selected(call, line, results);
}
void median(Call& call) {
  const Line line(call, call.tensor("self"));
  give_selected(call, line, call.graph().add(ops::median, {line.x}, ops::Axis{line.axis})->results);
}

// The running extreme, and the last index that reached it.
template <const Op& kOp>
void running(Call& call) {
  core::Value* given = call.tensor("self");
  const Line line(call, given);
  const ops::Axis axis{line.axis};
  core::Value* x = given->type.dtype == DType::kBool ? converted(call.graph(), line.x, DType::kU8) : line.x;
  core::Value* extreme = emit(call, kOp, {x}, axis);
  core::Value* reached = emit(call, ops::equal, {x, extreme});
  if (is_floating(x->type.dtype))
    reached = emit(call, ops::logical_or, {reached, emit(call, ops::is_nan, {x})});
  Shape along(x->type.rank(), 1);
  along[static_cast<size_t>(line.axis)] = line.size();
  core::Value* place = counting(call, line.size());
  place =
      emit(call, ops::select, {reached, reshaped(call, place, along), scalar(call.graph(), 0, DType::kI64)});
  call.give(0, line.as_given(call, converted(call.graph(), extreme, given->type.dtype)));
  call.give(1, line.as_given(call, emit(call, ops::cumulative_maximum, {place}, axis)));
}

// Halvings until the position in a line of any size within the dim's range is known.
int64_t steps_for(const Dim& size, const SymbolTable& symbols) {
  return std::min<int64_t>(std::bit_width(static_cast<uint64_t>(range_of(size, symbols).max)),
                           ops::SearchSorted::kMostSteps);
}
// The positions of "self" in a sequence, which is the argument `name`, perhaps reordered.
void search(Call& call, std::string_view name, core::Value* sequence, bool right) {
  const DType dtype = promoted(call, {name, "self"});
  const ops::SearchSorted attributes{right, steps_for(sequence->type.shape.back(), call.graph().symbols)};
  sequence = converted(call.graph(), sequence, dtype);
  core::Value* found = emit(call, ops::search_sorted, {sequence, operand(call, "self", dtype)}, attributes);
  call.give(call.flag("out_int32") ? converted(call.graph(), found, DType::kI32) : found);
}
core::Value* lines(Call& call, std::string_view name) {
  core::Value* sequence = call.tensor(name);
  call.require(sequence->type.rank() > 0, "a sequence without dims");
  return sequence;
}
void bucketize(Call& call) { search(call, "boundaries", lines(call, "boundaries"), call.flag("right")); }
void search_sorted(Call& call) {
  core::Value* sequence = lines(call, "sorted_sequence");
  if (core::Value* order = call.optional_tensor("sorter"))
    sequence = emit(call, ops::gather, {sequence, order},
                    ops::Axis{static_cast<int64_t>(sequence->type.rank()) - 1});
  const std::string side = call.text("side");
  search(call, "sorted_sequence", sequence, side.empty() ? call.flag("right") : side == "right");
}

constexpr Converter kOrderConverters[] = {
    {"aten.bucketize.Scalar", bucketize},
    {"aten.bucketize.Tensor", bucketize},
    {"aten.cummax.default", running<ops::cumulative_maximum>},
    {"aten.cummin.default", running<ops::cumulative_minimum>},
    {"aten.kthvalue.default", kth_value},
    {"aten.median.dim", median},
    {"aten.searchsorted.Scalar", search_sorted},
    {"aten.searchsorted.Tensor", search_sorted},
    {"aten.sort.default", sort},
    {"aten.sort.stable", sort},
    {"aten.topk.default", top_k},
};

}  // namespace

std::span<const Converter> order_converters() { return kOrderConverters; }

}  // namespace ingot::core::aten
