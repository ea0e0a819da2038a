// SPDX-License-Identifier: Apache-2.0
// Gamma and Bessel functions, orthogonal polynomials: elementwise, in a routine.
#include "ops/special_function.h"

#include <algorithm>

#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/terms.h"

namespace ingot::core::aten {
namespace {

// The name of a function as a template argument.
template <size_t kSize>
struct FunctionName {
  char text[kSize];
  constexpr FunctionName(const char (&given)[kSize]) { std::copy_n(given, kSize, text); }  // NOLINT: converts
};

template <FunctionName kName>
Term function_of(const Term& x) {
  return {x.call(), emit(x.call(), ops::special_function, {x}, ops::SpecialFunction{kName.text})};
}
// The only operand, which some schemas call x.
Term element(Call& call) { return real_term(call, call.has("self") ? "self" : "x"); }
template <FunctionName kName>
void of_element(Call& call) {
  call.give(function_of<kName>(element(call)));
}
// Of degrees and shifted polynomials: `shift` maps [0, 1] to [-1, 1].
void give_of_pair(Call& call, const char* name, std::string_view first, std::string_view second, bool shift) {
  const DType dtype = promoted_to_floating(call, {first, second});
  Term x(call, operand(call, first, dtype));
  if (shift) x = x * 2 - x.constant(1);
  const Shape shape = call.result_meta().shape;
  core::Value* y = expanded(call, operand(call, second, dtype), shape);
  call.give(emit(call, ops::special_function, {expanded(call, x, shape), y}, ops::SpecialFunction{name}));
}
template <FunctionName kName>
void of_elements(Call& call) {
  give_of_pair(call, kName.text, "self", "other", false);
}
template <FunctionName kName, bool kShifted = false>
void polynomial(Call& call) {
  give_of_pair(call, kName.text, "x", "n", kShifted);
}
void polygamma(Call& call) {
  const Term x = real_term(call, "self");
  const Term order = filled_like(x, static_cast<double>(call.integer("n")));
  call.give(emit(call, ops::special_function, {order, x}, ops::SpecialFunction{"polygamma"}));
}

void fraction_and_exponent(Call& call) {
  const Term x = real_term(call, "self");
  call.give(0, function_of<"fraction">(x));
  call.give(1, function_of<"exponent">(x).to(DType::kI32));
}
void next_after(Call& call) {
  const DType dtype = promoted_to_floating(call, {"self", "other"});
  if (bit_width(dtype) < 32) call.refuse("the next number of a narrow dtype");
  of_elements<"next_after">(call);
}

constexpr Converter kSpecialFunctionConverters[] = {
    {"aten.digamma.default", of_element<"digamma">},
    {"aten.erfinv.default", of_element<"inverse_erf">},
    {"aten.i0.default", of_element<"bessel_i0">},
    {"aten.igamma.default", of_elements<"lower_gamma">},
    {"aten.igammac.default", of_elements<"upper_gamma">},
    {"aten.lgamma.default", of_element<"log_gamma">},
    {"aten.polygamma.default", polygamma},
    {"aten.special_airy_ai.default", of_element<"airy">},
    {"aten.special_bessel_j0.default", of_element<"bessel_j0">},
    {"aten.special_bessel_j1.default", of_element<"bessel_j1">},
    {"aten.special_bessel_y0.default", of_element<"bessel_y0">},
    {"aten.special_bessel_y1.default", of_element<"bessel_y1">},
    {"aten.special_chebyshev_polynomial_t.default", polynomial<"chebyshev_t">},
    {"aten.special_chebyshev_polynomial_u.default", polynomial<"chebyshev_u">},
    {"aten.special_chebyshev_polynomial_v.default", polynomial<"chebyshev_v">},
    {"aten.special_chebyshev_polynomial_w.default", polynomial<"chebyshev_w">},
    {"aten.special_erfcx.default", of_element<"scaled_erfc">},
    {"aten.special_hermite_polynomial_h.default", polynomial<"hermite_h">},
    {"aten.special_hermite_polynomial_he.default", polynomial<"hermite_he">},
    {"aten.special_i0e.default", of_element<"scaled_bessel_i0">},
    {"aten.special_i1.default", of_element<"bessel_i1">},
    {"aten.special_i1e.default", of_element<"scaled_bessel_i1">},
    {"aten.special_laguerre_polynomial_l.default", polynomial<"laguerre">},
    {"aten.special_legendre_polynomial_p.default", polynomial<"legendre">},
    {"aten.special_modified_bessel_k0.default", of_element<"bessel_k0">},
    {"aten.special_modified_bessel_k1.default", of_element<"bessel_k1">},
    {"aten.special_ndtri.default", of_element<"inverse_normal">},
    {"aten.special_scaled_modified_bessel_k0.default", of_element<"scaled_bessel_k0">},
    {"aten.special_scaled_modified_bessel_k1.default", of_element<"scaled_bessel_k1">},
    {"aten.special_zeta.default", of_elements<"zeta">},
    {"prims.frexp.default", fraction_and_exponent},
    {"prims.nextafter.default", next_after},
};

}  // namespace

std::span<const Converter> special_functions_converters() { return kSpecialFunctionConverters; }

}  // namespace ingot::core::aten
