// SPDX-License-Identifier: Apache-2.0
// Shapes, and tensors that depend on shapes and attributes alone.
#include <algorithm>
#include <array>
#include <cmath>

#include "importers/onnx/converters/converters.h"
#include "importers/onnx/tensors.h"
#include "ops/generate.h"
#include "ops/select.h"

namespace ingot::core::onnx {
namespace {

Tensor constant_of(Call& call, const TensorDef& tensor) {
  Tensor value = call.scope().read(tensor);
  if (bit_width(value.dtype) == 4) refuse("constants of four bits that are not initializers");
  return value;
}

int64_t limited(int64_t index, size_t rank) {
  const auto most = static_cast<int64_t>(rank);
  return std::clamp(index < 0 ? index + most : index, int64_t{0}, most);
}

void convert_shape(Call& call) {
  const Shape& shape = call.tensor(0)->type.shape;
  const int64_t start = limited(call.attribute_integer("start", 0), shape.size());
  const int64_t end = limited(call.attribute_integer("end", INT64_MAX), shape.size());
  Sizes sizes{DType::kI64, {std::max(end - start, int64_t{0})}, {}};
  for (int64_t i = start; i < end; ++i) sizes.elements.push_back(shape[static_cast<size_t>(i)]);
  call.give_sizes(std::move(sizes));
}

void convert_size(Call& call) { call.give_sizes({DType::kI64, {}, {product(call.tensor(0)->type.shape)}}); }

Tensor numbers(const std::vector<double>& values, DType dtype, bool is_scalar) {
  const Tensor tensor = make_tensor(
      dtype, is_scalar ? std::vector<int64_t>{} : std::vector<int64_t>{static_cast<int64_t>(values.size())});
  TensorView flat = tensor.view();
  flat.shape = {static_cast<int64_t>(values.size())};
  flat.strides = {1};
  for (size_t i = 0; i < values.size(); ++i) write_double(flat, {{static_cast<int64_t>(i)}}, values[i]);
  return tensor;
}

Tensor integers(const std::vector<int64_t>& values, bool is_scalar) {
  Sizes sizes{DType::kI64, {}, {}};
  if (!is_scalar) sizes.shape = {static_cast<int64_t>(values.size())};
  sizes.elements.assign(values.begin(), values.end());
  return to_tensor(sizes);
}

void convert_constant(Call& call) {
  Graph& graph = call.graph();
  if (const TensorDef* tensor = call.attribute_tensor("value"))
    return call.give(graph.add_constant(constant_of(call, *tensor)));
  if (call.has_attribute("value_float"))
    return call.give(
        graph.add_constant(numbers({call.attribute_number("value_float", 0)}, DType::kF32, true)));
  if (call.has_attribute("value_int"))
    return call.give(graph.add_constant(integers({call.attribute_integer("value_int", 0)}, true)));
  if (call.has_attribute("value_floats"))
    return call.give(graph.add_constant(numbers(call.attribute_numbers("value_floats"), DType::kF32, false)));
  if (call.has_attribute("value_ints"))
    return call.give(graph.add_constant(integers(call.attributes("value_ints"), false)));
  refuse("a constant that is neither a tensor nor numbers");
}

Shape checked_shape(std::vector<Dim> dims) {
  for (const Dim& dim : dims) {
    if (dim.constant().value_or(0) < 0) refuse_node("a size is negative");
  }
  return dims;
}

void convert_constant_of_shape(Call& call) {
  Graph& graph = call.graph();
  const Shape shape = checked_shape(call.dims(0));
  const TensorDef* given = call.attribute_tensor("value");
  const Tensor value = given != nullptr ? constant_of(call, *given) : make_tensor(DType::kF32, {1});
  if (value.elements() != 1) refuse_node("the value is not a single element");
  const std::optional<Sizes> number = sizes_of(value);
  const bool is_fixed = std::ranges::all_of(shape, &Dim::is_constant);
  const int64_t count = is_fixed ? product(shape).constant().value() : INT64_MAX;
  if (!number || count > static_cast<int64_t>(kMostSizes))
    return call.give(expanded(graph, reshaped(graph, graph.add_constant(value), {}), shape));
  Sizes sizes{value.dtype, {}, {}};
  for (const Dim& dim : shape) sizes.shape.push_back(dim.constant().value());
  sizes.elements.assign(static_cast<size_t>(count), number->elements[0]);
  call.give_sizes(std::move(sizes));
}

// ceil((limit - start) / delta) elements, at least none.
Dim range_extent(const Dim& start, const Dim& limit, int64_t delta, const SymbolTable& symbols) {
  const Dim room = delta > 0 ? limit - start : start - limit;
  const Dim count = ceil_divide(room, std::abs(delta));
  return range_of(count, symbols).min >= 0 ? count : maximum(count, 0);
}

void convert_range(Call& call) {
  Graph& graph = call.graph();
  const DType dtype = call.tensor(0)->type.dtype;
  if (is_floating(dtype)) {
    const double start = call.number(0), limit = call.number(1), delta = call.number(2);
    const double count = std::max(std::ceil((limit - start) / delta), 0.0);
    constexpr double kMost = 1 << 30;
    if (!(count <= kMost)) refuse_node("the range has too many elements");
    const Term index(graph, counting(graph, Dim(static_cast<int64_t>(count)), DType::kI64));
    return call.give((index.to(DType::kF64) * delta + start).to(dtype));
  }
  const std::optional<Sizes> start = call.sizes(0), limit = call.sizes(1);
  const int64_t delta = call.integer(2);
  if (!start || !limit) refuse("its limits depend on values of a run, not on sizes alone");
  if (delta == 0 || delta == INT64_MIN || start->elements.size() != 1 || limit->elements.size() != 1)
    refuse_node("a limit is not a number, or the step is 0");
  const Dim extent = range_extent(start->elements[0], limit->elements[0], delta, graph.symbols);
  call.give(graph.call(ops::iota, {}, ops::Iota{start->elements[0], delta, extent, dtype}));
}

void convert_triangle(Call& call) {
  const int64_t diagonal = call.has(1) ? call.integer(1) : 0;
  Value* x = call.tensor(0);
  if (x->type.rank() < 2) refuse_node("the input has less than two dims");
  constexpr int64_t kMost = int64_t{1} << 40;
  call.give(call.graph().call(ops::triangle, {x},
                              ops::Triangle{std::clamp(diagonal, -kMost, kMost), call.flag("upper", true)}));
}

// 0, 1, ... along one axis of `rank` dims.
Value* counting_along(Graph& graph, const Dim& extent, size_t axis, size_t rank) {
  Shape shape(rank, 1);
  shape[axis] = extent;
  return reshaped(graph, counting(graph, extent), std::move(shape));
}

void convert_eye_like(Call& call) {
  Graph& graph = call.graph();
  const TensorType& type = call.tensor(0)->type;
  if (type.rank() != 2) refuse_node("the input must have two dims");
  const auto dtype = call.has_attribute("dtype") ? dtype_of(call.attribute_integer("dtype", 0)) : type.dtype;
  if (!dtype) refuse("elements of this type");
  const Term row(graph, counting_along(graph, type.shape[0], 0, 2)),
      column(graph, counting_along(graph, type.shape[1], 1, 2));
  const Term diagonal = row + static_cast<double>(call.attribute_integer("k", 0));
  call.give(diagonal.apply(ops::equal, column).to(*dtype));
}

// values[1] at the index, values[0] elsewhere; indices outside of the range have neither.
void convert_one_hot(Call& call) {
  Graph& graph = call.graph();
  Value *indices = call.tensor(0), *values = call.tensor(2);
  const std::vector<double> depth = call.numbers(1);
  if (depth.size() != 1 || !(depth[0] >= 0 && depth[0] < 1e9))
    refuse_node("the depth is not a number of elements");
  const Dim count(static_cast<int64_t>(depth[0]));
  const size_t rank = indices->type.rank() + 1, axis = call.axis(call.attribute_integer("axis", -1), rank);
  Value* index = unsqueezed(graph, wrapped_indices(graph, indices, count), axis);
  const Term is_hot = Term(graph, index).apply(ops::equal, {graph, counting_along(graph, count, axis, rank)});
  const auto value = [&](int64_t at) {
    return Term(graph, without_axis(graph, sliced(graph, values, 0, at, at + 1), 0));
  };
  if (values->type.shape != Shape{2}) refuse_node("there must be two values");
  call.give(is_hot.choose(value(1), value(0)));
}

constexpr auto kShape = std::to_array<Converter>({
    {"Constant", convert_constant},
    {"ConstantOfShape", convert_constant_of_shape, nullptr, 9},
    {"EyeLike", convert_eye_like, nullptr, 9},
    {"OneHot", convert_one_hot, nullptr, 9},
    {"Range", convert_range, nullptr, 11},
    {"Shape", convert_shape},
    {"Size", convert_size},
    {"Trilu", convert_triangle, nullptr, 14},
});

}  // namespace

std::span<const Converter> shape_converters() { return kShape; }

}  // namespace ingot::core::onnx
