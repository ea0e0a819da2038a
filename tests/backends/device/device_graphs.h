// SPDX-License-Identifier: Apache-2.0
// Graphs and values for tests on devices.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "evaluate/evaluate.h"
#include "importers/aten/imported.h"
#include "types/tensor.h"

namespace ingot::core::test {

// Three kernels and more in a row, with an arena.
constexpr std::string_view kChain =
    "graph g(%x: f32[B in 0..4096, 8]) { %a = add(%x, %x) %s = sum(%a) {axes=[1]} %b = multiply(%s, %s) "
    "%c = add(%b, %s) return %c }";
// The second kernel may be given indices out of range.
constexpr std::string_view kTaken =
    "graph g(%x: f32[9], %i: i64[K in 1..100]) { %t = take(%x, %i) %y = exp(%t) %s = sum(%y) {axes=[0]} "
    "return "
    "%s }";

Tensor floats(const std::vector<float>& values, std::vector<int64_t> shape);
Tensor integers(const std::vector<int64_t>& values);
Tensor counted(std::vector<int64_t> shape, float first = 0);  // first, first + 1/4, ...
bool same_bits(const Tensor& a, const Tensor& b);

Graph parsed(std::string_view text);
// With the values of its weights and states, by their names.
aten::Imported model_with(std::string_view text, const TensorMap& values);

std::string code_of_call(const std::function<void()>& function);  // "": it did not throw

}  // namespace ingot::core::test
