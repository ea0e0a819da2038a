// SPDX-License-Identifier: Apache-2.0
// Conversions without effect, alone or in sequence.
#include "ops/ops.h"
#include "ops/select.h"
#include "passes/simplify/rules.h"
#include "types/lossless.h"

namespace ingot::core::rewriting {
namespace {

bool has_operand_dtype(const Match& match) { return match.value("x")->type.dtype == match.dtype(); }
// Converting a float to an integer saturates; converting between integers keeps the low bits.
bool widens_first(const Match& match) {
  const DType x = match.value("x")->type.dtype, first = match.value("first")->type.dtype;
  const bool saturates = is_integer(x) && is_floating(first) && is_integer(match.dtype());
  return is_lossless(x, first) && (!saturates || is_lossless(x, match.dtype()));
}
bool is_from_bool(const Match& match) { return match.value("x")->type.dtype == DType::kBool; }

Value* convert_directly(Graph& graph, const Match& match) {
  return graph.call(ops::convert, {match.value("x")}, ops::Convert{match.dtype()});
}

constexpr Rule kConversionRules[] = {
    {.name = "convert_to_same", .from = "convert(x)", .to = "x", .when = has_operand_dtype},
    {.name = "convert_twice",
     .from = "convert(first:convert(x))",
     .when = widens_first,
     .build = convert_directly},
    {.name = "not_equal_to_zero_of_bool",
     .from = "not_equal(convert(x), 0)",
     .to = "x",
     .when = is_from_bool},
    {.name = "equal_to_one_of_bool", .from = "equal(convert(x), 1)", .to = "x", .when = is_from_bool},
    {.name = "equal_to_zero_of_bool",
     .from = "equal(convert(x), 0)",
     .to = "logical_not(x)",
     .when = is_from_bool},
};

}  // namespace

std::span<const Rule> conversion_rules() { return kConversionRules; }

}  // namespace ingot::core::rewriting
