// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/building.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "ops/axis.h"
#include "ops/concat.h"
#include "ops/generate.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/view.h"
#include "support/error.h"
#include "types/predicate.h"

namespace ingot::core::onnx {

void refuse(std::string reason) { throw UnsupportedError("INGOT-N541", std::move(reason)); }

std::vector<int64_t> all_axes(size_t rank) {
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

const Dim& dim_of(const Value* value, size_t axis) {
  require(axis < value->type.rank(), "a tensor with too few dims");
  return value->type.shape[axis];
}

Value* reshaped(Graph& graph, Value* value, Shape shape) {
  if (value->type.shape == shape) return value;
  if (product(value->type.shape) != product(shape))
    refuse(fmt::format("it is not known that {} has as many elements as {}", to_string(value->type.shape),
                       to_string(shape)));
  return graph.call(ops::reshape, {value}, ops::NewShape{std::move(shape)});
}

Value* expanded(Graph& graph, Value* value, Shape shape) {
  if (value->type.shape == shape) return value;
  const Shape& from = value->type.shape;
  const bool fits = from.size() <= shape.size() &&
                    std::equal(from.rbegin(), from.rend(), shape.rbegin(),
                               [](const Dim& a, const Dim& b) { return a == b || a == Dim(1); });
  if (!fits)
    refuse(fmt::format("it is not known that {} broadcasts to {}", to_string(from), to_string(shape)));
  return graph.call(ops::expand, {value}, ops::NewShape{std::move(shape)});
}

Value* transposed(Graph& graph, Value* value, std::vector<int64_t> order) {
  if (order == all_axes(value->type.rank())) return value;
  return graph.call(ops::transpose, {value}, ops::Permutation{std::move(order)});
}

Value* sliced(Graph& graph, Value* value, size_t axis, const Dim& start, const Dim& end, int64_t step) {
  if (start == Dim(0) && end == dim_of(value, axis) && step == 1) return value;
  return graph.call(ops::slice, {value}, ops::Slice{static_cast<int64_t>(axis), start, end, step});
}

Value* unsqueezed(Graph& graph, Value* value, size_t axis) {
  Shape shape = value->type.shape;
  require(axis <= shape.size(), "a tensor with too few dims");
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis), 1);
  return reshaped(graph, value, std::move(shape));
}

Value* without_axis(Graph& graph, Value* value, size_t axis) {
  Shape shape = value->type.shape;
  require(axis < shape.size(), "a tensor with too few dims");
  shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  return reshaped(graph, value, std::move(shape));
}

Value* concatenated(Graph& graph, std::vector<Value*> values, size_t axis) {
  require(!values.empty(), "an empty list to join");
  if (values.size() == 1) return values[0];
  return graph.call(ops::concat, std::move(values), ops::Axis{static_cast<int64_t>(axis)});
}

Value* converted(Graph& graph, Value* value, DType dtype) {
  return value->type.dtype == dtype ? value : graph.call(ops::convert, {value}, ops::Convert{dtype});
}

Value* scalar(Graph& graph, double value, DType dtype) {
  const Tensor tensor = make_tensor(dtype, {});
  write_double(tensor.view(), {}, value);
  return graph.add_constant(tensor);
}

Value* size_scalar(Graph& graph, const Dim& size, DType dtype) {
  return graph.call(ops::full, {}, ops::Full{.integer = size, .dtype = dtype, .shape = {}});
}

Value* filled(Graph& graph, Shape shape, double value, DType dtype) {
  return expanded(graph, scalar(graph, value, dtype), std::move(shape));
}

Value* counting(Graph& graph, const Dim& extent, DType dtype) {
  return graph.call(ops::iota, {}, ops::Iota{0, 1, extent, dtype});
}

Value* wrapped_indices(Graph& graph, Value* indices, const Dim& size) {
  const Term index(graph, converted(graph, indices, DType::kI64));
  return (index < 0).choose(index + Term(graph, size_scalar(graph, size, DType::kI64)), index);
}

Shape broadcast(const Shape& a, const Shape& b) {
  Shape result = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  const size_t skip = result.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dim& dim = result[skip + i];
    if (shorter[i] == dim || shorter[i] == Dim(1)) continue;
    if (dim != Dim(1))
      refuse(fmt::format("it is not known that {} and {} broadcast", to_string(a), to_string(b)));
    dim = shorter[i];
  }
  return result;
}

std::optional<Dim> exact_quotient(const Shape& total, const Shape& part) {
  Shape left = total;
  Dim divisor = 1;
  for (const Dim& dim : part) {
    const auto same = std::ranges::find(left, dim);
    same != left.end() ? void(left.erase(same)) : void(divisor = divisor * dim);
  }
  if (divisor == Dim(0) || std::ranges::find(part, Dim(0)) != part.end()) return std::nullopt;
  const Dim quotient = floor_divide(product(left), divisor);
  if (quotient * divisor != product(left)) return std::nullopt;
  return quotient;
}

Dim clamped(const Dim& value, const Dim& low, const Dim& high, const SymbolTable& symbols) {
  Dim result = value;
  if (!provably_not_negative(result - low, symbols))
    result = provably_not_negative(low - result, symbols) ? low : maximum(result, low);
  if (!provably_not_negative(high - result, symbols))
    result = provably_not_negative(result - high, symbols) ? high : minimum(result, high);
  return result;
}

}  // namespace ingot::core::onnx
