// SPDX-License-Identifier: Apache-2.0
// Rules for what kernels decide by values and positions: long rows that change at an index, numbers beside
// tensors, and halves that are read by what shows how they were rounded.
#include "ops/axis.h"
#include "ops/concat.h"
#include "ops/generate.h"
#include "ops/ops.h"
#include "ops/select.h"
#include "ops/view.h"
#include "tests/random/rules.h"

namespace ingot::core::random_graphs {
namespace {

// Rows are cut from four vectors on, which others seldom are.
Value* long_rows(Maker& maker, int64_t rows) {
  const TensorType type{maker.random_dtype(), {rows, maker.number(60, 150)}, {}};
  return maker.source(type, maker.fill_for(type.dtype));
}

Value* only_result(Node* node) { return node == nullptr ? nullptr : node->results[0]; }

Value* joined(Maker& maker, Value* x) {
  const TensorType type{x->type.dtype, {x->type.shape[0], maker.number(1, 80)}, {}};
  std::vector<Value*> parts = {x, maker.partner(type)};
  if (maker.chance(0.5)) std::swap(parts[0], parts[1]);
  return only_result(maker.add(ops::concat, std::move(parts), ops::Axis{1}));
}

Value* padded(Maker& maker, Value* x) {
  ops::Pad pad{.low = {0, maker.number(0, 20)},
               .high = {maker.number(0, 1), maker.number(0, 20)},
               .value = static_cast<double>(maker.number(-1, 1))};
  return only_result(maker.add(ops::pad, {x}, pad));
}

Value* with_a_break(Maker& maker, Value* x) {
  switch (maker.number(0, 5)) {
    case 0:
      return joined(maker, x);
    case 1:
      return padded(maker, x);
    case 2:
      return only_result(maker.add(ops::roll, {x}, ops::Roll{1, maker.number(-70, 70)}));
    case 3:
      return only_result(maker.add(ops::flip, {x}, ops::Axes{{1}}));
    case 4:
      return only_result(
          maker.add(ops::triangle, {x}, ops::Triangle{maker.number(-20, 100), maker.chance(0.5)}));
    default:
      return only_result(maker.add(
          ops::slice, {x}, ops::Slice{.axis = 1, .start = maker.number(0, 9), .end = x->type.shape[1]}));
  }
}

Value* number_of(Maker& maker, DType dtype) {
  constexpr double kNumbers[] = {0, 1, -1, 0.1, 2, 0.5, -3};
  const double value = pick(maker.random(), kNumbers);
  const auto whole = static_cast<int64_t>(value);
  return only_result(maker.add(ops::full, {}, ops::Full{.value = value, .integer = whole, .dtype = dtype}));
}

// Nearly a half: narrowing makes it one again.
Value* next_to(Maker& maker, Value* half) {
  Value* wide = maker.as(half, DType::kF32);
  const Node* factor =
      maker.add(ops::full, {}, ops::Full{.value = 1 + 1.0 / (1 << 14), .dtype = DType::kF32});
  return wide == nullptr || factor == nullptr
             ? nullptr
             : only_result(maker.add(ops::multiply, {wide, factor->results[0]}));
}

constexpr const Op* kComparisons[] = {&ops::equal,   &ops::not_equal,     &ops::less,
                                      &ops::greater, &ops::greater_equal, &ops::less_equal};
constexpr const Op* kSteps[] = {&ops::floor, &ops::ceil, &ops::round, &ops::truncate, &ops::sign};
constexpr const Op* kBetween[] = {&ops::negate, &ops::absolute, &ops::relu};

}  // namespace

bool add_long_rows(Maker& maker) {
  Value* x = long_rows(maker, maker.number(1, 12));
  bool made = false;
  for (int64_t breaks = maker.number(1, 3); x != nullptr && breaks > 0; --breaks) {
    x = with_a_break(maker, x);
    made |= x != nullptr;
  }
  return made;
}

bool add_number(Maker& maker) {
  constexpr const Op* kReaders[] = {&ops::add,     &ops::multiply, &ops::subtract, &ops::maximum,
                                    &ops::minimum, &ops::equal,    &ops::greater};
  Value* x = maker.any();
  if (x->type.dtype == DType::kBool) return false;
  std::vector<Value*> operands = {x, number_of(maker, x->type.dtype)};
  if (maker.chance(0.4)) std::swap(operands[0], operands[1]);
  return maker.add(*pick(maker.random(), kReaders), std::move(operands)) != nullptr;
}

// What shows a rounding: comparisons, steps, and integers and floats that are made of halves.
bool add_narrowed(Maker& maker) {
  constexpr DType kHalves[] = {DType::kF16, DType::kBF16};
  constexpr DType kMade[] = {DType::kF32, DType::kI64, DType::kI32, DType::kF16, DType::kBF16, DType::kBool};
  const TensorType type{pick(maker.random(), kHalves), maker.random_shape(2), {}};
  Value* half = maker.source(type, maker.fill_for(type.dtype));
  Value* narrow = maker.as(next_to(maker, half), type.dtype);
  if (narrow == nullptr) return false;
  if (maker.chance(0.3)) narrow = only_result(maker.add(*pick(maker.random(), kBetween), {narrow}));
  switch (maker.number(0, 3)) {
    case 0:
      return maker.add(*pick(maker.random(), kSteps), {narrow}) != nullptr;
    case 1:
      return maker.add(ops::convert, {narrow}, ops::Convert{pick(maker.random(), kMade)}) != nullptr;
    default:
      return maker.add(*pick(maker.random(), kComparisons), {narrow, half}) != nullptr;
  }
}

}  // namespace ingot::core::random_graphs
