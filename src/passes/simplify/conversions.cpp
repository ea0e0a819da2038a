// SPDX-License-Identifier: Apache-2.0
// Conversions without effect, alone or in sequence.
#include "ops/ops.h"
#include "ops/select.h"
#include "passes/simplify/rules.h"

namespace ingot::core::rewriting {
namespace {

// Significant bits that a dtype represents exactly.
int significant_bits(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 53;
    case DType::kF32:
      return 24;
    case DType::kF16:
      return 11;
    case DType::kBF16:
      return 8;
    case DType::kBool:
      return 1;
    default:
      return is_integer(dtype) ? bit_width(dtype) - (is_signed(dtype) ? 1 : 0) : 64;
  }
}

bool has_wide_exponent(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kBF16;
}

// Whether `to` can represent every value of `from`.
bool is_lossless(DType from, DType to) {
  if (from == to || from == DType::kBool) return !is_complex(to);
  if (significant_bits(from) > significant_bits(to)) return false;
  if (is_floating(from)) return is_floating(to) && (has_wide_exponent(to) || !has_wide_exponent(from));
  if (is_floating(to)) return has_wide_exponent(to);
  return !is_signed(from) || is_signed(to);
}

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
