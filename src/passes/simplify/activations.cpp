// SPDX-License-Identifier: Apache-2.0
// Activation functions in decomposed form.
#include "passes/simplify/rules.h"

namespace ingot::core::rewriting {
namespace {

constexpr Rule kActivationRules[] = {
    {.name = "relu_of_maximum", .from = "maximum(x, 0)", .to = "relu(x)"},
    {.name = "relu_of_clamp", .from = "clamp(x) {low=0}", .to = "relu(x)"},
    {.name = "sigmoid", .from = "reciprocal(add(exp(negate(x)), 1))", .to = "sigmoid(x)"},
    {.name = "silu", .from = "multiply(x, sigmoid(x))", .to = "silu(x)"},
    {.name = "silu_of_divide", .from = "divide(x, add(exp(negate(x)), 1))", .to = "silu(x)"},
    {.name = "mish", .from = "multiply(x, tanh(softplus(x) {beta=1}))", .to = "mish(x)"},
    {.name = "hard_sigmoid",
     .from = "divide(clamp(add(x, 3)) {low=0, high=6}, 6)",
     .to = "hard_sigmoid(x)",
     .when = is_floating_result},
    {.name = "hard_sigmoid_of_multiply",
     .from = "multiply(clamp(add(x, 3)) {low=0, high=6}, 0.16666666666666666)",
     .to = "hard_sigmoid(x)"},
    {.name = "hard_swish", .from = "multiply(x, hard_sigmoid(x))", .to = "hard_swish(x)"},
    {.name = "hard_swish_of_divide",
     .from = "divide(multiply(x, clamp(add(x, 3)) {low=0, high=6}), 6)",
     .to = "hard_swish(x)",
     .when = is_floating_result},
    // x / 2 * (1 + erf(x / sqrt(2))), in all orders that occur.
    {.name = "gelu_half_first",
     .from = "multiply(multiply(x, 0.5), add(erf(multiply(x, 0.7071067811865476)), 1))",
     .to = "gelu(x)"},
    {.name = "gelu_half_first_divide",
     .from = "multiply(multiply(x, 0.5), add(erf(divide(x, 1.4142135623730951)), 1))",
     .to = "gelu(x)"},
    {.name = "gelu_half_inside",
     .from = "multiply(x, multiply(add(erf(multiply(x, 0.7071067811865476)), 1), 0.5))",
     .to = "gelu(x)"},
    {.name = "gelu_half_inside_divide",
     .from = "multiply(x, multiply(add(erf(divide(x, 1.4142135623730951)), 1), 0.5))",
     .to = "gelu(x)"},
    {.name = "gelu_half_last",
     .from = "multiply(multiply(x, add(erf(multiply(x, 0.7071067811865476)), 1)), 0.5)",
     .to = "gelu(x)"},
    {.name = "gelu_half_last_divide",
     .from = "multiply(multiply(x, add(erf(divide(x, 1.4142135623730951)), 1)), 0.5)",
     .to = "gelu(x)"},
    // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))).
    {.name = "gelu_tanh",
     .from = "multiply(multiply(x, 0.5), add(tanh(multiply(add(x, multiply(multiply(multiply(x, x), x), "
             "0.044715)), "
             "0.7978845608028654)), 1))",
     .to = "gelu(x) {approximate=true}"},
    {.name = "gelu_tanh_half_inside",
     .from =
         "multiply(x, multiply(add(tanh(multiply(add(x, multiply(multiply(multiply(x, x), x), 0.044715)), "
         "0.7978845608028654)), 1), 0.5))",
     .to = "gelu(x) {approximate=true}"},
    {.name = "gelu_tanh_factored",
     .from = "multiply(multiply(x, 0.5), add(tanh(multiply(multiply(x, 0.7978845608028654), "
             "add(multiply(multiply(x, 0.044715), x), 1))), 1))",
     .to = "gelu(x) {approximate=true}"},
};

}  // namespace

std::span<const Rule> activation_rules() { return kActivationRules; }

}  // namespace ingot::core::rewriting
