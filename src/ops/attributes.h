// SPDX-License-Identifier: Apache-2.0
// Attribute structs of the ops whose attributes other folders read or write. Axes are non-negative unless
// stated otherwise.
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct Axis {  // softmax, log_softmax, concat, cumulative_sum, gather ...
  int64_t axis = 0;
  static constexpr auto fields() { return std::tuple{Field{"axis", &Axis::axis}}; }
};
struct IndexedAxes {  // index, index_put: the axes that the index operands replace, sorted
  std::vector<int64_t> axes;
  static constexpr auto fields() { return std::tuple{Field{"axes", &IndexedAxes::axes}}; }
};
struct Reduce {
  std::vector<int64_t> axes;  // sorted
  bool keep_dims = false;
  static constexpr auto fields() {
    return std::tuple{Field{"axes", &Reduce::axes}, Field{"keep_dims", &Reduce::keep_dims}};
  }
};
struct Variance {
  std::vector<int64_t> axes;  // sorted
  bool keep_dims = false;
  double correction = 1;
  static constexpr auto fields() {
    return std::tuple{Field{"axes", &Variance::axes}, Field{"keep_dims", &Variance::keep_dims},
                      Field{"correction", &Variance::correction}};
  }
};
struct Norm {
  double order = 2;           // may be infinite
  std::vector<int64_t> axes;  // sorted
  bool keep_dims = false;
  static constexpr auto fields() {
    return std::tuple{Field{"order", &Norm::order}, Field{"axes", &Norm::axes},
                      Field{"keep_dims", &Norm::keep_dims}};
  }
};
struct ArgReduce {  // argmax, argmin
  int64_t axis = 0;
  bool keep_dims = false;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &ArgReduce::axis}, Field{"keep_dims", &ArgReduce::keep_dims}};
  }
};
struct Convert {
  DType dtype = DType::kF32;
  static constexpr auto fields() { return std::tuple{Field{"dtype", &Convert::dtype}}; }
};
struct Full {  // `value` for floats, `integer` for integers and bools
  double value = 0;
  Dim integer = 0;
  DType dtype = DType::kF32;
  std::vector<Dim> shape;
  static constexpr auto fields() {
    return std::tuple{Field{"value", &Full::value}, Field{"integer", &Full::integer},
                      Field{"dtype", &Full::dtype}, Field{"shape", &Full::shape}};
  }
};
struct Iota {  // start + step * i for i < extent
  Dim start = 0, step = 1, extent = 0;
  DType dtype = DType::kI64;
  static constexpr auto fields() {
    return std::tuple{Field{"start", &Iota::start}, Field{"step", &Iota::step},
                      Field{"extent", &Iota::extent}, Field{"dtype", &Iota::dtype}};
  }
};
struct NewShape {  // reshape, expand
  std::vector<Dim> shape;
  static constexpr auto fields() { return std::tuple{Field{"shape", &NewShape::shape}}; }
};
struct Permutation {  // transpose: result dim i is operand dim order[i]
  std::vector<int64_t> order;
  static constexpr auto fields() { return std::tuple{Field{"order", &Permutation::order}}; }
};
struct Slice {  // start <= index < end, both inside the operand
  int64_t axis = 0;
  Dim start = 0, end = 0;
  int64_t step = 1;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &Slice::axis}, Field{"start", &Slice::start}, Field{"end", &Slice::end},
                      Field{"step", &Slice::step}};
  }
};
struct Pad {  // elements before and after each dim; mode: constant, reflect, replicate, circular
  std::vector<Dim> low, high;
  double value = 0;
  std::string mode = "constant";
  static constexpr auto fields() {
    return std::tuple{Field{"low", &Pad::low}, Field{"high", &Pad::high}, Field{"value", &Pad::value},
                      Field{"mode", &Pad::mode}};
  }
};
struct Roll {  // element i moves to i + shift
  int64_t axis = 0;
  Dim shift = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &Roll::axis}, Field{"shift", &Roll::shift}};
  }
};
struct Relayout {  // the same logical tensor in another layout
  Layout layout;
  static constexpr auto fields() { return std::tuple{Field{"layout", &Relayout::layout}}; }
};
// Operands: input [N, C, *spatial], weight [O, C/groups, *kernel], optional bias [O].
struct Convolution {
  std::vector<int64_t> stride, padding, dilation;  // one entry per spatial dim; padding on both sides
  int64_t groups = 1;
  static constexpr auto fields() {
    return std::tuple{Field{"stride", &Convolution::stride}, Field{"padding", &Convolution::padding},
                      Field{"dilation", &Convolution::dilation}, Field{"groups", &Convolution::groups}};
  }
};
struct WinogradInput {
  std::vector<int64_t> padding;  // on both sides of height and width
  static constexpr auto fields() { return std::tuple{Field{"padding", &WinogradInput::padding}}; }
};
struct ConvolutionTranspose {
  std::vector<int64_t> stride, padding, output_padding, dilation;  // one entry per spatial dim
  int64_t groups = 1;
  static constexpr auto fields() {
    return std::tuple{
        Field{"stride", &ConvolutionTranspose::stride}, Field{"padding", &ConvolutionTranspose::padding},
        Field{"output_padding", &ConvolutionTranspose::output_padding},
        Field{"dilation", &ConvolutionTranspose::dilation}, Field{"groups", &ConvolutionTranspose::groups}};
  }
};
struct MaxPool {  // one entry per spatial dim
  std::vector<int64_t> kernel, stride, padding, dilation;
  bool ceil_mode = false;
  static constexpr auto fields() {
    return std::tuple{Field{"kernel", &MaxPool::kernel}, Field{"stride", &MaxPool::stride},
                      Field{"padding", &MaxPool::padding}, Field{"dilation", &MaxPool::dilation},
                      Field{"ceil_mode", &MaxPool::ceil_mode}};
  }
};
struct AveragePool {  // divisor 0: the number of elements in the window
  std::vector<int64_t> kernel, stride, padding;
  bool ceil_mode = false;
  bool count_padding = true;
  int64_t divisor = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"kernel", &AveragePool::kernel},
                      Field{"stride", &AveragePool::stride},
                      Field{"padding", &AveragePool::padding},
                      Field{"ceil_mode", &AveragePool::ceil_mode},
                      Field{"count_padding", &AveragePool::count_padding},
                      Field{"divisor", &AveragePool::divisor}};
  }
};
struct AdaptivePool {
  std::vector<Dim> size;  // of the result, one entry per spatial dim
  static constexpr auto fields() { return std::tuple{Field{"size", &AdaptivePool::size}}; }
};
struct Rnn {
  bool relu = false;  // otherwise tanh
  static constexpr auto fields() { return std::tuple{Field{"relu", &Rnn::relu}}; }
};
struct ScatterReduce {  // reduce: sum, prod, mean, amax, amin
  int64_t axis = 0;
  std::string reduce = "sum";
  bool include_self = true;  // otherwise the first source element with an index replaces the element of x
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &ScatterReduce::axis}, Field{"reduce", &ScatterReduce::reduce},
                      Field{"include_self", &ScatterReduce::include_self}};
  }
};
struct GridSample {
  std::string mode = "bilinear";  // bilinear, nearest, bicubic
  std::string outside = "zeros";  // zeros, border, reflection
  bool align_corners = false;
  static constexpr auto fields() {
    return std::tuple{Field{"mode", &GridSample::mode}, Field{"outside", &GridSample::outside},
                      Field{"align_corners", &GridSample::align_corners}};
  }
};
struct SearchSorted {
  bool right = false;
  int64_t steps = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"right", &SearchSorted::right}, Field{"steps", &SearchSorted::steps}};
  }
};
struct Sort {
  int64_t axis = 0;
  bool descending = false;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &Sort::axis}, Field{"descending", &Sort::descending}};
  }
};
struct TopK {
  int64_t axis = 0, count = 1;
  bool largest = true;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &TopK::axis}, Field{"count", &TopK::count},
                      Field{"largest", &TopK::largest}};
  }
};
struct Resize {
  std::vector<Dim> size;       // of the result, one entry per spatial dim
  std::vector<double> scale;   // result size / operand size if the model specified it; empty: from the sizes
  bool align_corners = false;  // linear only
  static constexpr auto fields() {
    return std::tuple{Field{"size", &Resize::size}, Field{"scale", &Resize::scale},
                      Field{"align_corners", &Resize::align_corners}};
  }
};
// Operands: query [*, L, E], key [*, S, E], value [*, S, V], optional mask broadcastable to [*, L, S] (bool:
// true keeps a key; float: added). grouped: query heads (dim -3) are a multiple of key heads.
struct Attention {
  double scale = 0;  // 0: 1 / sqrt(E)
  bool causal = false;
  bool grouped = false;
  bool empty_is_nan = false;  // a query whose keys are all masked gives NaN, as softmax does; otherwise zeros
  static constexpr auto fields() {
    return std::tuple{Field{"scale", &Attention::scale}, Field{"causal", &Attention::causal},
                      Field{"grouped", &Attention::grouped}, Field{"empty_is_nan", &Attention::empty_is_nan}};
  }
};
struct Normalization {  // layer_norm, rms_norm over the last `axes` dims
  double epsilon = 1e-5;
  int64_t axes = 1;
  static constexpr auto fields() {
    return std::tuple{Field{"epsilon", &Normalization::epsilon}, Field{"axes", &Normalization::axes}};
  }
};
struct GroupNorm {
  int64_t groups = 1;
  double epsilon = 1e-5;
  static constexpr auto fields() {
    return std::tuple{Field{"groups", &GroupNorm::groups}, Field{"epsilon", &GroupNorm::epsilon}};
  }
};
struct BatchNorm {
  double epsilon = 1e-5;
  static constexpr auto fields() { return std::tuple{Field{"epsilon", &BatchNorm::epsilon}}; }
};
struct Axes {
  std::vector<int64_t> axes;
  static constexpr auto fields() { return std::tuple{Field{"axes", &Axes::axes}}; }
};

}  // namespace ingot::core::ops
