// SPDX-License-Identifier: Apache-2.0
// Records of elementwise ops, built from their scalar functions.
#pragma once

#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/samples.h"

namespace ingot::core::ops {

inline constexpr Operand kAnyOperand[] = {{"x", DTypeSet::kAny}};
inline constexpr Operand kFloatingOperand[] = {{"x", DTypeSet::kFloating}};
inline constexpr Operand kNumericOperand[] = {{"x", DTypeSet::kNumeric}};
inline constexpr Operand kNumericPair[] = {{"a", DTypeSet::kNumeric}, {"b", DTypeSet::kNumeric}};
inline constexpr Operand kAnyPair[] = {{"a", DTypeSet::kAny}, {"b", DTypeSet::kAny}};
inline constexpr Operand kFloatingPair[] = {{"a", DTypeSet::kFloating}, {"b", DTypeSet::kFloating}};
inline constexpr Operand kBitsPair[] = {{"a", DTypeSet::kIntegerOrBool}, {"b", DTypeSet::kIntegerOrBool}};
inline constexpr Operand kIntegerPair[] = {{"a", DTypeSet::kInteger}, {"b", DTypeSet::kInteger}};
inline constexpr Operand kBoolPair[] = {{"a", DTypeSet::kBool}, {"b", DTypeSet::kBool}};

Samples floating_samples();
Samples positive_samples();  // in (0, 2]
Samples unit_samples();      // in [-1, 1]
Samples integer_samples();
Samples boolean_samples();
Samples floating_pair_samples();
Samples power_samples();
Samples integer_pair_samples();
Samples boolean_pair_samples();

// kScalar: Expr(Expr).
template <auto kScalar>
loops::Kernel lower_unary(const Node& node) {
  return lower_elementwise(node, [](const std::vector<Expr>& values) { return kScalar(values[0]); });
}
template <auto kScalar>
constexpr Op unary_op(std::string_view name, std::string_view summary,
                      std::span<const Operand> operands = kFloatingOperand,
                      Samples (*samples)() = floating_samples, Traits more = {}) {
  return Op{.name = name,
            .summary = summary,
            .operands = operands,
            .traits = Trait::kElementwise | more,
            .infer = infer_same,
            .lower = lower_unary<kScalar>,
            .samples = samples};
}
template <const loops::Function& kFunction>
Expr apply_function(const Expr& x) {
  return loops::call(kFunction, x);
}
template <loops::Unary kOperation>
Expr apply_operation(const Expr& x) {
  return loops::unary(kOperation, x);
}

// kScalar: Expr(const Struct& attributes, Expr).
template <typename Struct, auto kScalar>
loops::Kernel lower_unary_with(const Node& node) {
  const auto attributes = node.attributes<Struct>();
  return lower_elementwise(node,
                           [&](const std::vector<Expr>& values) { return kScalar(attributes, values[0]); });
}
template <typename Struct, auto kScalar>
constexpr Op unary_op_with(std::string_view name, std::string_view summary, std::span<const Operand> operands,
                           Samples (*samples)(), Traits more = {}) {
  return Op{.name = name,
            .summary = summary,
            .operands = operands,
            .attributes = attribute_schema<Struct>(),
            .traits = Trait::kElementwise | more,
            .infer = infer_same,
            .lower = lower_unary_with<Struct, kScalar>,
            .samples = samples};
}

// kScalar: Expr(Expr, Expr).
template <auto kScalar>
loops::Kernel lower_binary(const Node& node) {
  return lower_elementwise(node,
                           [](const std::vector<Expr>& values) { return kScalar(values[0], values[1]); });
}
template <auto kScalar>
constexpr Op binary_op(std::string_view name, std::string_view summary,
                       std::span<const Operand> operands = kNumericPair, Traits more = {},
                       Samples (*samples)() = floating_pair_samples) {
  return Op{.name = name,
            .summary = summary,
            .operands = operands,
            .traits = Trait::kElementwise | more,
            .infer = infer_broadcast,
            .lower = lower_binary<kScalar>,
            .samples = samples};
}
template <auto kScalar>
constexpr Op comparison_op(std::string_view name, std::string_view summary, Traits more = {}) {
  Op op = binary_op<kScalar>(name, summary, kAnyPair, more);
  op.infer = infer_broadcast_bool;
  return op;
}
template <loops::Binary kFunction>
Expr apply_operator(const Expr& a, const Expr& b) {
  return loops::binary(kFunction, a, b);
}

}  // namespace ingot::core::ops
