// SPDX-License-Identifier: Apache-2.0
// Convolution, pooling and resizing over the spatial dims of [N, C, *spatial]; one image may come without N.
#include <algorithm>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "ops/concat.h"
#include "ops/convolution.h"
#include "ops/pool.h"
#include "ops/resize.h"

namespace ingot::core::aten {
namespace {

constexpr int64_t kLargestKernel = int64_t{1} << 31;  // times a dilation it fits 64 bits

// Runs `build` on x with a batch dim, and removes it again if x had none.
template <typename Build>
void with_batch(Call& call, std::string_view name, size_t spatial, const Build& build, size_t result = 0) {
  core::Value* x = call.tensor(name);
  const bool single = x->type.rank() == spatial + 1;
  call.require(single || x->type.rank() == spatial + 2, "a tensor of unexpected rank");
  core::Value* built = build(single ? unsqueezed(call, x, 0) : x);
  call.give(result, single ? without_axes(call, built, {0}) : built);
}

size_t kernel_rank(Call& call) {
  const size_t rank = call.tensor("weight")->type.rank();
  call.require(rank > 2, "a kernel of unexpected rank");
  return rank - 2;
}

// `more`: zeros at the high end of each spatial dim, in addition to the padding.
void convolution_with(Call& call, std::vector<int64_t> padding, const std::vector<int64_t>& more = {}) {
  const size_t spatial = kernel_rank(call);
  const ops::Convolution convolution{window_entries(call, "stride", spatial), std::move(padding),
                                     window_entries(call, "dilation", spatial), call.integer("groups")};
  with_batch(call, "input", spatial, [&](core::Value* x) {
    if (std::ranges::any_of(more, [](int64_t zeros) { return zeros > 0; })) {
      ops::Pad pad{.low = std::vector<Dim>(spatial + 2, 0), .high = {0, 0}};
      pad.high.insert(pad.high.end(), more.begin(), more.end());
      x = emit(call, ops::pad, {x}, pad);
    }
    return emit(call, ops::convolution, {x, call.tensor("weight"), call.optional_tensor("bias")},
                convolution);
  });
}
void transposed_convolution(Call& call) {
  const size_t spatial = kernel_rank(call);
  const ops::ConvolutionTranspose convolution{
      window_entries(call, "stride", spatial), window_entries(call, "padding", spatial),
      window_entries(call, "output_padding", spatial), window_entries(call, "dilation", spatial),
      call.integer("groups")};
  with_batch(call, "input", spatial, [&](core::Value* x) {
    return emit(call, ops::convolution_transpose, {x, call.tensor("weight"), call.optional_tensor("bias")},
                convolution);
  });
}
void convolution(Call& call) {
  if (call.has("transposed") && call.flag("transposed")) return transposed_convolution(call);
  convolution_with(call, window_entries(call, "padding", kernel_rank(call)));
}

// "same" preserves the size; if the padding is odd, the high side gets one more.
void padded_convolution(Call& call) {
  const size_t spatial = kernel_rank(call);
  std::vector<int64_t> padding(spatial, 0), more(spatial, 0);
  const std::vector<int64_t> dilation = window_entries(call, "dilation", spatial);
  if (call.text("padding") == "valid") return convolution_with(call, padding);
  for (size_t i = 0; i < spatial; ++i) {
    const auto kernel = call.tensor("weight")->type.shape[i + 2].constant();
    call.require(kernel && *kernel <= kLargestKernel, "a kernel whose size is not known, or very large");
    const int64_t total = dilation[i] * (*kernel - 1);
    padding[i] = total / 2;
    more[i] = total % 2;
  }
  convolution_with(call, std::move(padding), more);
}

template <size_t kSpatial>
std::vector<int64_t> stride_or_kernel(Call& call) {
  const bool given = call.has("stride") && !call.integers("stride").empty();
  return window_entries(call, given ? "stride" : "kernel_size", kSpatial);
}
template <size_t kSpatial>
void max_pool(Call& call) {
  const ops::MaxPool pool{window_entries(call, "kernel_size", kSpatial), stride_or_kernel<kSpatial>(call),
                          window_entries(call, "padding", kSpatial),
                          window_entries(call, "dilation", kSpatial), call.flag("ceil_mode")};
  for (size_t i = 0; i < std::min<size_t>(call.result_count(), 2); ++i) {
    const Op& op = i == 0 ? ops::max_pool : ops::max_pool_indices;
    with_batch(call, "self", kSpatial, [&](core::Value* x) { return emit(call, op, {x}, pool); }, i);
  }
}
template <size_t kSpatial>
void average_pool(Call& call) {
  ops::AveragePool pool{window_entries(call, "kernel_size", kSpatial), stride_or_kernel<kSpatial>(call),
                        window_entries(call, "padding", kSpatial), call.flag("ceil_mode"),
                        call.flag("count_include_pad")};
  if (call.has("divisor_override")) pool.divisor = call.integer("divisor_override");
  with_batch(call, "self", kSpatial,
             [&](core::Value* x) { return emit(call, ops::average_pool, {x}, pool); });
}
template <size_t kSpatial>
void adaptive_pool_of(Call& call, const Op& op, size_t result) {
  std::vector<Dim> size = call.dims("output_size");
  if (size.size() == 1) size.resize(kSpatial, size[0]);
  call.require(size.size() == kSpatial, "another number of sizes than dims");
  with_batch(
      call, "self", kSpatial, [&](core::Value* x) { return emit(call, op, {x}, ops::AdaptivePool{size}); },
      result);
}
template <size_t kSpatial>
void adaptive_average_pool(Call& call) {
  adaptive_pool_of<kSpatial>(call, ops::adaptive_average_pool, 0);
}
template <size_t kSpatial>
void adaptive_max_pool(Call& call) {
  adaptive_pool_of<kSpatial>(call, ops::adaptive_max_pool, 0);
  if (call.result_count() > 1) adaptive_pool_of<kSpatial>(call, ops::adaptive_max_pool_indices, 1);
}

// Sizes are the recorded ones of the result; scales count only if the model specified them.
template <size_t kSpatial, const Op& kOp>
void resize(Call& call) {
  const char* name = call.has("input") ? "input" : "self";
  const Shape& shape = call.result_meta().shape;
  call.require(shape.size() > kSpatial, "a result of unexpected rank");
  ops::Resize resize{.size = std::vector<Dim>(shape.end() - kSpatial, shape.end())};
  for (const char* scale : {"scales", "scales_d", "scales_h", "scales_w"}) {
    if (call.has(scale)) resize.scale.push_back(call.number(scale));
  }
  if (call.has("scale_factors")) resize.scale = call.numbers("scale_factors");
  if (resize.scale.size() != kSpatial) resize.scale.clear();
  if (call.has("align_corners")) resize.align_corners = call.flag("align_corners");
  with_batch(call, name, kSpatial, [&](core::Value* x) { return emit(call, kOp, {x}, resize); });
}

constexpr Converter kWindowConverters[] = {
    {"aten._adaptive_avg_pool2d.default", adaptive_average_pool<2>},
    {"aten._adaptive_avg_pool3d.default", adaptive_average_pool<3>},
    {"aten._convolution.default", convolution},
    {"aten._convolution.deprecated", convolution},
    {"aten._convolution_mode.default", padded_convolution},
    {"aten.adaptive_avg_pool1d.default", adaptive_average_pool<1>},
    {"aten.adaptive_avg_pool2d.default", adaptive_average_pool<2>},
    {"aten.adaptive_avg_pool3d.default", adaptive_average_pool<3>},
    {"aten.adaptive_max_pool1d.default", adaptive_max_pool<1>},
    {"aten.adaptive_max_pool2d.default", adaptive_max_pool<2>},
    {"aten.adaptive_max_pool3d.default", adaptive_max_pool<3>},
    {"aten.avg_pool1d.default", average_pool<1>},
    {"aten.avg_pool2d.default", average_pool<2>},
    {"aten.avg_pool3d.default", average_pool<3>},
    {"aten.conv1d.default", convolution},
    {"aten.conv1d.padding", padded_convolution},
    {"aten.conv2d.default", convolution},
    {"aten.conv2d.padding", padded_convolution},
    {"aten.conv3d.default", convolution},
    {"aten.conv3d.padding", padded_convolution},
    {"aten.conv_transpose1d.default", transposed_convolution},
    {"aten.conv_transpose2d.input", transposed_convolution},
    {"aten.conv_transpose3d.input", transposed_convolution},
    {"aten.convolution.default", convolution},
    {"aten.max_pool1d.default", max_pool<1>},
    {"aten.max_pool1d_with_indices.default", max_pool<1>, kComposed},
    {"aten.max_pool2d.default", max_pool<2>},
    {"aten.max_pool2d_with_indices.default", max_pool<2>},
    {"aten.max_pool3d.default", max_pool<3>},
    {"aten.max_pool3d_with_indices.default", max_pool<3>},
    {"aten.upsample_bilinear2d.default", resize<2, ops::resize_linear>},
    {"aten.upsample_bilinear2d.vec", resize<2, ops::resize_linear>},
    {"aten.upsample_linear1d.default", resize<1, ops::resize_linear>},
    {"aten.upsample_linear1d.vec", resize<1, ops::resize_linear>},
    {"aten.upsample_trilinear3d.default", resize<3, ops::resize_linear>},
    {"aten.upsample_trilinear3d.vec", resize<3, ops::resize_linear>},
    {"aten.upsample_nearest1d.default", resize<1, ops::resize_nearest>},
    {"aten.upsample_nearest1d.vec", resize<1, ops::resize_nearest>},
    {"aten.upsample_nearest2d.default", resize<2, ops::resize_nearest>},
    {"aten.upsample_nearest2d.vec", resize<2, ops::resize_nearest>},
    {"aten.upsample_nearest3d.default", resize<3, ops::resize_nearest>},
    {"aten.upsample_nearest3d.vec", resize<3, ops::resize_nearest>},
};

}  // namespace

std::span<const Converter> window_converters() { return kWindowConverters; }

}  // namespace ingot::core::aten
