// SPDX-License-Identifier: Apache-2.0
// Ranges, and indices of triangles.
#include <algorithm>
#include <array>
#include <cmath>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "ops/generate.h"

namespace ingot::core::aten {
namespace {

// The requested dtype, otherwise the recorded one of the result.
DType result_dtype_of(Call& call) {
  const std::optional<DType> requested = call.dtype("dtype");
  return requested ? *requested : call.result_meta().dtype;
}

constexpr double kMostElements = 0x1p53;  // doubles count exactly up to here

// start + step * i, where torch computes floating ranges in f64.
core::Value* real_range(Call& call, double start, double step, const Dim& count, DType dtype) {
  core::Value* value = counting(call, count, 1, DType::kF64);
  value = emit(call, ops::multiply, {value, scalar(call.graph(), step, DType::kF64)});
  return converted(call.graph(), emit(call, ops::add, {value, scalar(call.graph(), start, DType::kF64)}),
                   dtype);
}
// Integer ranges between floats: torch counts before rounding, except for i64.
void whole_range(Call& call, double start, double step, DType dtype) {
  const Shape& shape = call.result_meta().shape;
  call.require(shape.size() == 1, "a result of unexpected rank");
  const auto whole = [&](double value) { return whole_number(call.graph(), value); };
  call.give(emit(call, ops::iota, {}, ops::Iota{whole(start), whole(step), shape[0], dtype}));
}
void range(Call& call, bool has_start, bool has_step) {
  const DType dtype = result_dtype_of(call);
  const bool is_real = (has_start && call.is_floating_number("start")) || call.is_floating_number("end") ||
                       (has_step && call.is_floating_number("step"));
  if (is_real) {
    const double start = has_start ? call.number("start") : 0, step = has_step ? call.number("step") : 1;
    if (!is_floating(dtype)) return whole_range(call, start, step, dtype);
    const double count = std::ceil((call.number("end") - start) / step);
    call.require(count >= 0 && count < kMostElements, "a range that does not end");
    return call.give(real_range(call, start, step, static_cast<int64_t>(count), dtype));
  }
  const auto end_of = [&](std::string_view name) {  // bools count too
    const auto known = call.known_number(name);
    return known && std::abs(*known) < 2 ? Dim(static_cast<int64_t>(*known)) : call.dim(name);
  };
  const Dim start = has_start ? end_of("start") : Dim(0), end = end_of("end");
  const int64_t step = has_step ? end_of("step").constant().value_or(0) : 1;
  call.require(step != 0 && step != INT64_MIN, "a step that is not known, or 0, or of more than 63 bits");
  const Dim count = step > 0 ? ceil_divide(end - start, step) : ceil_divide(start - end, -step);
  const bool direct = (is_integer(dtype) || is_floating(dtype)) && !is_half(dtype);  // which are rounded
  core::Value* value = emit(call, ops::iota, {}, ops::Iota{start, step, count, direct ? dtype : DType::kI64});
  call.give(converted(call.graph(), value, dtype));
}
void range_to(Call& call) { range(call, false, false); }
void range_between(Call& call) { range(call, true, false); }
void range_by(Call& call) { range(call, true, true); }

constexpr int64_t kMostRows = 4096;  // their indices are a constant

// Row and column of each element on one side of a diagonal.
template <bool kUpper>
void triangle_indices(Call& call) {
  const int64_t rows = call.integer("row"), columns = call.integer("col"), offset = call.integer("offset");
  const DType dtype = call.dtype("dtype").value_or(DType::kI64);
  call.require(is_integer(dtype), "indices that are not integers");
  call.require(rows >= 0 && columns >= 0 && std::max(rows, columns) <= kMostRows, "a very large triangle");
  const auto for_each_place = [&](const auto& visit) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        if (kUpper ? j - i >= offset : j - i <= offset) visit(i, j);
      }
    }
  };
  int64_t count = 0, next = 0;
  for_each_place([&](int64_t, int64_t) { ++count; });
  Tensor tensor = make_tensor(dtype, {2, count});
  for_each_place([&](int64_t row, int64_t column) {
    write_integer(tensor.view(), std::array<int64_t, 2>{0, next}, row);
    write_integer(tensor.view(), std::array<int64_t, 2>{1, next++}, column);
  });
  call.give(call.graph().add_constant(std::move(tensor)));
}

constexpr Converter kCreationConverters[] = {
    {"aten.arange.default", range_to},
    {"aten.arange.start", range_between},
    {"aten.arange.start_step", range_by},
    {"aten.tril_indices.default", triangle_indices<false>, kComposed},
    {"aten.triu_indices.default", triangle_indices<true>, kComposed},
};

}  // namespace

std::span<const Converter> creation_converters() { return kCreationConverters; }

}  // namespace ingot::core::aten
