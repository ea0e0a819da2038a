// SPDX-License-Identifier: Apache-2.0
// Activation functions in decomposed form.
#include "passes/simplify/rules.h"

namespace ingot::core::rewriting {
namespace {

constexpr Rule kActivationRules[] = {
    {"maximum(x, 0)", "relu(x)"},
    {"clamp(x) {low=0}", "relu(x)"},
    {"reciprocal(add(exp(negate(x)), 1))", "sigmoid(x)"},
    {"multiply(x, sigmoid(x))", "silu(x)"},
    {"divide(x, add(exp(negate(x)), 1))", "silu(x)"},
    {"multiply(x, tanh(softplus(x) {beta=1}))", "mish(x)"},
    {"divide(clamp(add(x, 3)) {low=0, high=6}, 6)", "hard_sigmoid(x)"},
    {"multiply(clamp(add(x, 3)) {low=0, high=6}, 0.16666666666666666)", "hard_sigmoid(x)"},
    {"multiply(x, hard_sigmoid(x))", "hard_swish(x)"},
    {"divide(multiply(x, clamp(add(x, 3)) {low=0, high=6}), 6)", "hard_swish(x)"},
    // x / 2 * (1 + erf(x / sqrt(2))), in all orders that occur.
    {"multiply(multiply(x, 0.5), add(erf(multiply(x, 0.7071067811865476)), 1))", "gelu(x)"},
    {"multiply(multiply(x, 0.5), add(erf(divide(x, 1.4142135623730951)), 1))", "gelu(x)"},
    {"multiply(x, multiply(add(erf(multiply(x, 0.7071067811865476)), 1), 0.5))", "gelu(x)"},
    {"multiply(x, multiply(add(erf(divide(x, 1.4142135623730951)), 1), 0.5))", "gelu(x)"},
    {"multiply(multiply(x, add(erf(multiply(x, 0.7071067811865476)), 1)), 0.5)", "gelu(x)"},
    {"multiply(multiply(x, add(erf(divide(x, 1.4142135623730951)), 1)), 0.5)", "gelu(x)"},
    // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))).
    {"multiply(multiply(x, 0.5), add(tanh(multiply(add(x, multiply(multiply(multiply(x, x), x), 0.044715)), "
     "0.7978845608028654)), 1))",
     "gelu(x) {approximate=true}"},
    {"multiply(x, multiply(add(tanh(multiply(add(x, multiply(multiply(multiply(x, x), x), 0.044715)), "
     "0.7978845608028654)), 1), 0.5))",
     "gelu(x) {approximate=true}"},
    {"multiply(multiply(x, 0.5), add(tanh(multiply(multiply(x, 0.7978845608028654), "
     "add(multiply(multiply(x, 0.044715), x), 1))), 1))",
     "gelu(x) {approximate=true}"},
};

}  // namespace

std::span<const Rule> activation_rules() { return kActivationRules; }

}  // namespace ingot::core::rewriting
