// SPDX-License-Identifier: Apache-2.0
// Reductions, softmax and scans.
#include <algorithm>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "importers/aten/converters/terms.h"
#include "ops/axis.h"
#include "ops/reduce.h"
#include "ops/statistics.h"

namespace ingot::core::aten {
namespace {

ops::Reduce reduce_of(Call& call, const core::Value* x) { return {reduced_axes(call, x), keeps_dims(call)}; }

// `dtype` if given; sums and products of integers are i64.
core::Value* accumulating(Call& call) {
  core::Value* x = call.tensor("self");
  const auto asked = call.has("dtype") ? call.dtype("dtype") : std::nullopt;
  return converted(call.graph(), x, asked.value_or(is_floating(x->type.dtype) ? x->type.dtype : DType::kI64));
}
template <const Op& kOp>
void accumulate(Call& call) {
  core::Value* x = accumulating(call);
  call.give(emit(call, kOp, {x}, reduce_of(call, x)));
}
void mean(Call& call) {
  core::Value* x = call.tensor("self");
  x = converted(call.graph(), x, call.dtype("dtype").value_or(x->type.dtype));
  call.give(emit(call, ops::mean, {x}, reduce_of(call, x)));
}
// Maximum or minimum; for bools by logic.
core::Value* extreme_of(Call& call, core::Value* x, const Op& op, const Op& of_bools,
                        const ops::Reduce& reduce) {
  return emit(call, x->type.dtype == DType::kBool ? of_bools : op, {x}, reduce);
}
template <const Op& kOp, const Op& kOfBools>
void extreme(Call& call) {
  core::Value* x = call.tensor("self");
  call.give(extreme_of(call, x, kOp, kOfBools, reduce_of(call, x)));
}
template <const Op& kOp, const Op& kOfBools, const Op& kArg>
void extreme_along(Call& call) {
  core::Value* x = call.tensor("self");
  if (x->type.rank() == 0) {
    call.give(0, x);
    return call.give(1, scalar(call.graph(), 0, DType::kI64));
  }
  const ops::Reduce reduce{{static_cast<int64_t>(call.axis("dim", x->type.rank()))}, keeps_dims(call)};
  call.give(0, extreme_of(call, x, kOp, kOfBools, reduce));
  core::Value* number = x->type.dtype == DType::kBool ? converted(call.graph(), x, DType::kU8) : x;
  call.give(1, emit(call, kArg, {number}, ops::ArgReduce{reduce.axes[0], reduce.keep_dims}));
}
template <const Op& kArg>
void arg_extreme(Call& call) {
  core::Value* x = call.tensor("self");
  const size_t rank = x->type.rank();
  if (call.has("dim") && rank > 0)
    return call.give(emit(call, kArg, {x},
                          ops::ArgReduce{static_cast<int64_t>(call.axis("dim", rank)), keeps_dims(call)}));
  core::Value* flat = reshaped(call, x, {element_count(x->type)});
  core::Value* place = emit(call, kArg, {flat}, ops::ArgReduce{0, false});
  call.give(keeps_dims(call) ? reshaped(call, place, Shape(rank, 1)) : place);
}
template <const Op& kOp>
void logical_over_axes(Call& call) {
  const DType dtype = call.tensor("self")->type.dtype;
  core::Value* x = converted(call.graph(), call.tensor("self"), DType::kBool);
  core::Value* result = emit(call, kOp, {x}, reduce_of(call, x));
  call.give(dtype == DType::kU8 ? converted(call.graph(), result, dtype) : result);
}

void variance(Call& call) {
  core::Value* x = call.tensor("self");
  const double correction = call.has("correction") ? call.number("correction") : 1;
  call.give(
      emit(call, ops::variance, {x}, ops::Variance{reduced_axes(call, x), keeps_dims(call), correction}));
}

void vector_norm(Call& call) {
  core::Value* x = call.tensor("self");
  if (call.has("dtype")) x = converted(call.graph(), x, *call.dtype("dtype"));
  const double order = call.has("ord") ? call.number("ord") : 2;
  call.give(emit(call, ops::norm, {x}, ops::Norm{order, reduced_axes(call, x), keeps_dims(call)}));
}

void log_sum_exp(Call& call) {
  core::Value* x = floating(call, call.tensor("self"));
  call.give(emit(call, ops::log_sum_exp, {x}, reduce_of(call, x)));
}

core::Value* in_dtype(Call& call) {
  core::Value* x = call.tensor("self");
  if (call.has("half_to_float") && call.flag("half_to_float")) return converted(call.graph(), x, DType::kF32);
  return call.has("dtype") ? converted(call.graph(), x, *call.dtype("dtype")) : x;
}
template <const Op& kOp>
void along_axis(Call& call) {
  core::Value* x = in_dtype(call);
  if (!is_floating(x->type.dtype)) x = converted(call.graph(), x, DType::kF32);
  const Shape shape = x->type.shape;
  if (shape.empty()) x = reshaped(call, x, {1});
  const auto axis = static_cast<int64_t>(call.axis("dim", shape.size()));
  call.give(reshaped(call, emit(call, kOp, {x}, ops::Axis{axis}), shape));
}
template <const Op& kOp>
void scan(Call& call) {
  core::Value* x = accumulating(call);
  if (x->type.rank() == 0) return call.give(x);
  call.give(emit(call, kOp, {x}, ops::Axis{static_cast<int64_t>(call.axis("dim", x->type.rank()))}));
}

constexpr Converter kReductionConverters[] = {
    {"aten._log_softmax.default", along_axis<ops::log_softmax>},
    {"aten._softmax.default", along_axis<ops::softmax>},
    {"aten.all.default", logical_over_axes<ops::all>},
    {"aten.all.dim", logical_over_axes<ops::all>},
    {"aten.all.dims", logical_over_axes<ops::all>},
    {"aten.amax.default", extreme<ops::reduce_maximum, ops::any>},
    {"aten.amin.default", extreme<ops::reduce_minimum, ops::all>},
    {"aten.any.default", logical_over_axes<ops::any>},
    {"aten.any.dim", logical_over_axes<ops::any>},
    {"aten.any.dims", logical_over_axes<ops::any>},
    {"aten.argmax.default", arg_extreme<ops::argmax>},
    {"aten.argmin.default", arg_extreme<ops::argmin>},
    {"aten.cumprod.default", scan<ops::cumulative_product>},
    {"aten.cumsum.default", scan<ops::cumulative_sum>},
    {"aten.linalg_vector_norm.default", vector_norm},
    {"aten.log_softmax.int", along_axis<ops::log_softmax>},
    {"aten.logsumexp.default", log_sum_exp},
    {"aten.max.default", extreme<ops::reduce_maximum, ops::any>},
    {"aten.max.dim", extreme_along<ops::reduce_maximum, ops::any, ops::argmax>},
    {"aten.mean.default", mean},
    {"aten.mean.dim", mean},
    {"aten.min.default", extreme<ops::reduce_minimum, ops::all>},
    {"aten.min.dim", extreme_along<ops::reduce_minimum, ops::all, ops::argmin>},
    {"aten.prod.default", accumulate<ops::product>},
    {"aten.prod.dim_int", accumulate<ops::product>},
    {"aten.softmax.int", along_axis<ops::softmax>},
    {"aten.sum.default", accumulate<ops::sum>},
    {"aten.sum.dim_IntList", accumulate<ops::sum>},
    {"aten.var.correction", variance},
};

}  // namespace

std::span<const Converter> reduction_converters() { return kReductionConverters; }

}  // namespace ingot::core::aten
