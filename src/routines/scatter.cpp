// SPDX-License-Identifier: Apache-2.0
// Combines source elements with a copy of x, one after another: several may meet in one place.
#include <cstring>
#include <vector>

#include "routines/routines.h"
#include "support/error.h"

namespace ingot::core::routines {
namespace {

int64_t checked_index(const TensorView& indices, int64_t at, int64_t extent) {
  const int64_t index = indices.dtype == DType::kI32 ? reinterpret_cast<const int32_t*>(indices.data)[at]
                                                     : reinterpret_cast<const int64_t*>(indices.data)[at];
  if (index < 0 || index >= extent)
    throw UserError("INGOT-U333", "scatter: index " + std::to_string(index) + " is outside of a dim of " +
                                      std::to_string(extent));
  return index;
}

// Steps an index through a shape in row-major order.
void step_index(std::vector<int64_t>& index, std::span<const int64_t> shape) {
  for (size_t i = shape.size(); i-- > 0;) {
    if (++index[i] < shape[i]) return;
    index[i] = 0;
  }
}

int64_t element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// Indices and source have one element each, in places that x has too.
void check_tensors(const RoutineCall& call, std::string_view routine) {
  const auto require = [&](bool fits) { require_fit(fits, routine); };
  require(call.inputs.size() == 3 && call.outputs.size() == 1);
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &source = call.inputs[2];
  const int64_t axis = integer_attribute(call, "axis");
  require(axis >= 0 && axis < static_cast<int64_t>(x.shape.size()));
  require(indices.dtype == DType::kI32 || indices.dtype == DType::kI64);
  require(source.dtype == x.dtype && call.outputs[0].dtype == x.dtype && call.outputs[0].shape == x.shape);
  require(indices.shape.size() == x.shape.size() && source.shape == indices.shape);
  for (size_t i = 0; i < x.shape.size(); ++i) {
    require(static_cast<int64_t>(i) == axis || indices.shape[i] <= x.shape[i]);
  }
}

void copy_all(const TensorView& from, const TensorView& to) {
  const int64_t count = element_count(from.shape);
  if (count > 0) std::memcpy(to.data, from.data, static_cast<size_t>(row_bytes(from.dtype, count)));
}

// Calls visit(place in x, place in the source) for each index.
template <typename Visit>
void for_each_index(const RoutineCall& call, const Visit& visit) {
  const auto axis = static_cast<size_t>(integer_attribute(call, "axis"));
  const TensorView &x = call.inputs[0], &indices = call.inputs[1];
  const int64_t count = element_count(indices.shape);
  std::vector<int64_t> from(x.shape.size(), 0);
  for (int64_t i = 0; i < count; ++i, step_index(from, indices.shape)) {
    std::vector<int64_t> to = from;
    to[axis] = checked_index(indices, i, x.shape[axis]);
    visit(to, from);
  }
}

// Elements of one kind of number, read and written in its widest form.
struct Reals {
  using Number = double;
  static double read(const TensorView& view, std::span<const int64_t> at) { return read_double(view, at); }
  static void write(const TensorView& view, std::span<const int64_t> at, double value) {
    write_double(view, at, value);
  }
  static double mean(double sum, int64_t count) { return sum / static_cast<double>(count); }
};
struct Integers {
  using Number = int64_t;
  static int64_t read(const TensorView& view, std::span<const int64_t> at) { return read_integer(view, at); }
  static void write(const TensorView& view, std::span<const int64_t> at, int64_t value) {
    write_integer(view, at, value);
  }
  static int64_t mean(int64_t sum, int64_t count) {  // rounded down
    return sum / count - (sum % count != 0 && sum < 0 ? 1 : 0);
  }
};

// Integers that overflow wrap, as torch's do.
double sum_of(double a, double b) { return a + b; }
double product_of(double a, double b) { return a * b; }
int64_t sum_of(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t product_of(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// A NaN stays.
template <typename Number>
Number combine(std::string_view reduce, Number a, Number b) {
  if (reduce == "sum" || reduce == "mean") return sum_of(a, b);
  if (reduce == "prod") return product_of(a, b);
  if (a != a || b != b) return a != a ? a : b;
  return (reduce == "amax") == (a < b) ? b : a;
}

template <typename Kind>
void reduce_into(const RoutineCall& call) {
  const std::string_view reduce = text_attribute(call, "reduce");
  const TensorView &source = call.inputs[2], &result = call.outputs[0];
  const int64_t included = flag_attribute(call, "include_self") ? 1 : 0;
  std::vector<int64_t> met(static_cast<size_t>(element_count(result.shape)), included);
  const auto place_of = [&](std::span<const int64_t> at) {
    int64_t place = 0;
    for (size_t i = 0; i < at.size(); ++i) place = place * result.shape[i] + at[i];
    return static_cast<size_t>(place);
  };
  for_each_index(call, [&](const std::vector<int64_t>& to, const std::vector<int64_t>& from) {
    const auto value = Kind::read(source, from);
    const bool is_first = met[place_of(to)]++ == 0;
    Kind::write(result, to, is_first ? value : combine(reduce, Kind::read(result, to), value));
  });
  if (reduce != "mean") return;
  std::vector<int64_t> at(result.shape.size(), 0);
  for (const int64_t count : met) {
    if (count > 1) Kind::write(result, at, Kind::mean(Kind::read(result, at), count));
    step_index(at, result.shape);
  }
}

}  // namespace

void scatter_add(const RoutineCall& call) {
  check_tensors(call, "scatter_add");
  const TensorView &source = call.inputs[2], &result = call.outputs[0];
  copy_all(call.inputs[0], result);
  const bool is_real = is_floating(result.dtype);
  for_each_index(call, [&](const std::vector<int64_t>& to, const std::vector<int64_t>& from) {
    if (is_real) {
      write_double(result, to, read_double(result, to) + read_double(source, from));
    } else {
      write_integer(result, to, sum_of(read_integer(result, to), read_integer(source, from)));
    }
  });
}

void scatter_reduce(const RoutineCall& call) {
  check_tensors(call, "scatter_reduce");
  copy_all(call.inputs[0], call.outputs[0]);
  is_floating(call.outputs[0].dtype) ? reduce_into<Reals>(call) : reduce_into<Integers>(call);
}

}  // namespace ingot::core::routines
