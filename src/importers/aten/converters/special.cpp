// SPDX-License-Identifier: Apache-2.0
// Functions composed of other functions.
#include <cmath>
#include <limits>

#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/terms.h"
#include "ops/select.h"

namespace ingot::core::aten {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// By its definition, one sum per element: the work grows with the square of the dim.
void running_log_sum_exp(Call& call) {
  const Term given = operand_term(call, "self");
  if (given.shape().empty()) return call.give(given);
  constexpr int64_t kLongest = 2048;
  const size_t axis = call.axis("dim", given.shape().size()), last = given.shape().size() - 1;
  const Dim size = given.shape()[axis];
  call.require(range_of(size, call.graph().symbols).max <= kLongest, "a dim of more than 2048 elements");
  const Term line(call, unsqueezed(call, swapped(call, given, axis, last), last));
  const Term row(call, unsqueezed(call, counting(call, size), 1)), column(call, counting(call, size));
  const Term seen = row.apply(ops::greater_equal, column).choose(line, line.constant(-kInfinity));
  const Term sums = seen.reduce(ops::log_sum_exp, {static_cast<int64_t>(last) + 1});
  call.give(swapped(call, sums, axis, last));
}

constexpr Converter kSpecialConverters[] = {
    {"aten.logcumsumexp.default", running_log_sum_exp},
};

}  // namespace

std::span<const Converter> special_converters() { return kSpecialConverters; }

}  // namespace ingot::core::aten
