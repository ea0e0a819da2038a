// SPDX-License-Identifier: Apache-2.0
// Maxima of windows whose distances vary from sample to sample (Graham 2014): a gather, and a reduction over
// windows.
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/terms.h"
#include "ops/axis.h"
#include "ops/reduce.h"
#include "ops/statistics.h"

namespace ingot::core::aten {
namespace {

// The elements of windows along one dim.
struct FractionalDim {
  Dim size;  // of the input
  int64_t count, kernel;
};

// i64[N, C, count, kernel]: positions in the dim. `sample`: [N, C, 1], in [0, 1).
Term fractional_positions(Call& call, const FractionalDim& windows, const Term& sample) {
  const DType dtype = sample.dtype();
  const Term last(call, size_scalar(call.graph(), windows.size - windows.kernel, DType::kI64));
  Term start = last;
  if (windows.count > 1) {
    const Term i(call, counting(call, windows.count));
    const Term step = last.to(dtype) / static_cast<double>(windows.count - 1);
    const Term between = ((i.to(dtype) + sample) * step).to(DType::kI64) - (sample * step).to(DType::kI64);
    start = (i < static_cast<double>(windows.count - 1)).choose(between, last);
  }
  Shape shape = sample.shape();
  shape.back() = windows.count;
  const Term starts(call, unsqueezed(call, expanded(call, start, shape), shape.size()));
  return starts + Term(call, counting(call, windows.kernel));
}

template <size_t kSpatial>
void fractional_max_pool(Call& call) {
  core::Value* x = call.tensor("self");
  const bool has_batch = x->type.rank() == kSpatial + 2;
  if (!has_batch) x = unsqueezed(call, x, 0);
  call.require(x->type.rank() == kSpatial + 2, "an input of unexpected rank");
  const Shape& shape = x->type.shape;
  const Shape planes(shape.begin(), shape.begin() + 2);
  const auto kernels = call.integers("kernel_size", kSpatial),
             counts = call.integers("output_size", kSpatial);
  core::Value* samples = converted(call.graph(), call.tensor("random_samples"), x->type.dtype);
  call.require(samples->type.rank() == 3, "random samples of unexpected rank");

  // Flat positions: i64[N, C, counts..., kernels...]. In two dims, the first sample is of the last dim.
  Term flat(call, scalar(call.graph(), 0, DType::kI64));
  Dim elements = 1;
  int64_t outputs = 1, window = 1;
  for (size_t d = 0; d < kSpatial; ++d) {
    const FractionalDim windows{shape[d + 2], counts[d], kernels[d]};
    call.require(windows.count > 0 && windows.kernel > 0, "a window or a result without elements");
    const int64_t which = static_cast<int64_t>(kSpatial == 2 ? 1 - d : d);
    const Term sample(call, sliced(call, samples, 2, which, which + 1));
    Shape along = planes;
    along.resize(2 + 2 * kSpatial, Dim(1));
    along[2 + d] = windows.count;
    along[2 + kSpatial + d] = windows.kernel;
    const Term here(call, reshaped(call, fractional_positions(call, windows, sample), along));
    flat = flat * Term(call, size_scalar(call.graph(), windows.size, DType::kI64)) + here;
    elements = elements * windows.size;
    outputs *= windows.count;
    window *= windows.kernel;
  }
  const auto with_planes = [&](core::Value* value, const Shape& dims) {
    Shape whole = planes;
    whole.insert(whole.end(), dims.begin(), dims.end());
    return reshaped(call, value, whole);
  };
  const Shape result_shape = call.result_meta().shape;
  const Term index(call, with_planes(flat, {outputs, window}));
  core::Value* lines = with_planes(x, {elements});
  core::Value* taken = emit(call, ops::gather, {lines, with_planes(index, {outputs * window})}, ops::Axis{2});
  const Term candidates(call, with_planes(taken, {outputs, window}));
  call.give(0, reshaped(call, candidates.reduce(ops::reduce_maximum, {3}), result_shape));
  core::Value* best = emit(call, ops::argmax, {candidates}, ops::ArgReduce{3, true});
  call.give(1, reshaped(call, emit(call, ops::gather, {index, best}, ops::Axis{3}), result_shape));
}

constexpr Converter kFractionalPoolConverters[] = {
    {"aten.fractional_max_pool2d.default", fractional_max_pool<2>},
    {"aten.fractional_max_pool3d.default", fractional_max_pool<3>},
};

}  // namespace

std::span<const Converter> fractional_pool_converters() { return kFractionalPoolConverters; }

}  // namespace ingot::core::aten
