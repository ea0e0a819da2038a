// SPDX-License-Identifier: Apache-2.0
// Normalizations. Running statistics are read, never updated.
#include <limits>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "importers/aten/converters/terms.h"
#include "ops/batch_norm.h"
#include "ops/normalization.h"
#include "ops/reduce.h"
#include "ops/statistics.h"

namespace ingot::core::aten {
namespace {

int64_t normalized_axes(Call& call) { return static_cast<int64_t>(call.dims("normalized_shape").size()); }

// The kernel converts weights of another floating dtype to the dtype of x.
void layer_norm(Call& call) {
  const ops::Normalization norm{call.number("eps"), normalized_axes(call)};
  call.give(0,
            emit(call, ops::layer_norm,
                 {call.tensor("input"), call.optional_tensor("weight"), call.optional_tensor("bias")}, norm));
}

// Results 1 and 2: the mean and 1 / sqrt(variance + eps) over `axes`, if they are used.
void give_statistics(Call& call, core::Value* x, const std::vector<int64_t>& axes, bool keep_dims) {
  const DType exact = bit_width(x->type.dtype) < 32 ? DType::kF32 : x->type.dtype;
  const Term wide(call, converted(call.graph(), x, exact));
  const Term variance(call, emit(call, ops::variance, {wide}, ops::Variance{axes, keep_dims, 0}));
  const Term results[] = {wide.reduce(ops::mean, axes, keep_dims),
                          (variance + call.number("eps")).apply(ops::reciprocal_square_root)};
  for (const size_t i : {0, 1}) {
    if (i + 1 < call.result_count() && call.node().outputs[i + 1])
      call.give(i + 1, results[i].to(call.result_meta(i + 1).dtype));
  }
}
// Results 1 and 2 without elements.
void give_empty_statistics(Call& call) {
  for (size_t i = 1; i < call.result_count(); ++i) {
    if (!call.node().outputs[i]) continue;
    const TensorMeta& meta = call.result_meta(i);
    if (product(meta.shape) == Dim(0)) call.give(i, filled(call, meta.shape, 0, meta.dtype));
  }
}
void native_layer_norm(Call& call) {
  layer_norm(call);
  core::Value* x = call.tensor("input");
  const auto rank = static_cast<int64_t>(x->type.rank());
  std::vector<int64_t> axes;
  for (int64_t axis = rank - normalized_axes(call); axis < rank; ++axis) axes.push_back(axis);
  give_statistics(call, x, axes, true);
}

// In the dtype that torch computes in: half-precision tensors as f32.
double default_epsilon(DType dtype) {
  return dtype == DType::kF64 ? std::numeric_limits<double>::epsilon()
                              : std::numeric_limits<float>::epsilon();
}
void rms_norm(Call& call) {
  core::Value* x = call.tensor("input");
  const double epsilon = call.has("eps") ? call.number("eps") : default_epsilon(x->type.dtype);
  call.give(0, emit(call, ops::rms_norm, {x, call.optional_tensor("weight")},
                    ops::Normalization{epsilon, normalized_axes(call)}));
}

void group_norm_of(Call& call, int64_t groups) {
  const ops::GroupNorm norm{groups, call.number("eps")};
  call.give(0,
            emit(call, ops::group_norm,
                 {call.tensor("input"), call.optional_tensor("weight"), call.optional_tensor("bias")}, norm));
}
void group_norm(Call& call) { group_norm_of(call, call.integer("num_groups")); }
void native_group_norm(Call& call) {
  const int64_t groups = call.integer("group");
  group_norm_of(call, groups);
  core::Value* x = call.tensor("input");
  const Dim elements = element_count(x->type), lines = x->type.shape[0] * Dim(groups);
  if (lines == Dim(0)) return give_empty_statistics(call);
  if (!elements.is_constant() || !lines.is_constant()) return;
  const Dim each = floor_divide(elements, lines);
  give_statistics(call, reshaped(call, x, {x->type.shape[0], groups, each}), {2}, false);
}

core::Value* batch_norm_of(Call& call, core::Value* x, core::Value* mean, core::Value* variance) {
  return emit(call, ops::batch_norm,
              {x, mean, variance, call.optional_tensor("weight"), call.optional_tensor("bias")},
              ops::BatchNorm{call.number("eps")});
}
// Using the batch's own mean and variance, computed in f32 for narrow dtypes.
void norm_of_batch(Call& call) {
  core::Value* x = call.tensor("input");
  const DType dtype = x->type.dtype;
  if (bit_width(dtype) < 32) x = converted(call.graph(), x, DType::kF32);
  std::vector<int64_t> axes = all_axes(x->type.rank());
  call.require(axes.size() >= 2, "a tensor without channels");
  axes.erase(axes.begin() + 1);
  core::Value* wide =
      emit(call, ops::mean, {converted(call.graph(), x, DType::kF64)}, ops::Reduce{axes, false});
  core::Value* mean = converted(call.graph(), wide, x->type.dtype);
  core::Value* variance = emit(call, ops::variance, {x}, ops::Variance{axes, false, 0});
  call.give(0, converted(call.graph(), batch_norm_of(call, x, mean, variance), dtype));
}
void batch_norm(Call& call) {
  core::Value *mean = call.optional_tensor("running_mean"), *variance = call.optional_tensor("running_var");
  if (call.has("training") && call.flag("training")) {
    if (mean != nullptr || variance != nullptr) call.refuse("updated running statistics (training mode)");
    return norm_of_batch(call);
  }
  if (mean == nullptr || variance == nullptr) call.refuse("missing statistics");
  call.give(0, batch_norm_of(call, call.tensor("input"), mean, variance));
  give_empty_statistics(call);
}
void instance_norm(Call& call) {
  if (!call.flag("use_input_stats")) return batch_norm(call);
  if (call.optional_tensor("running_mean") != nullptr) call.refuse("updated running statistics");
  const auto channels = extent(call, call.tensor("input"), 1).constant();
  if (!channels) call.refuse("a number of channels that is not known");
  group_norm_of(call, *channels);
}

constexpr Converter kNormalizationConverters[] = {
    {"aten._fused_rms_norm.default", rms_norm},
    {"aten._native_batch_norm_legit.no_stats", batch_norm, kComposed},
    {"aten._native_batch_norm_legit_no_training.default", batch_norm},
    {"aten.batch_norm.default", batch_norm},
    {"aten.cudnn_batch_norm.default", batch_norm},
    {"aten.group_norm.default", group_norm},
    {"aten.instance_norm.default", instance_norm},
    {"aten.layer_norm.default", layer_norm},
    {"aten.native_batch_norm.default", batch_norm},
    {"aten.native_group_norm.default", native_group_norm},
    {"aten.native_layer_norm.default", native_layer_norm},
    {"aten.rms_norm.default", rms_norm},
};

}  // namespace

std::span<const Converter> normalization_converters() { return kNormalizationConverters; }

}  // namespace ingot::core::aten
