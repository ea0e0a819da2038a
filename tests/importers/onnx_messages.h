// SPDX-License-Identifier: Apache-2.0
// Changes of ONNX models by field, in place of bytes: the lengths of all messages around a change stay right.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <string_view>

namespace ingot::core::onnx::test {

// The model with one field somewhere changed, removed, repeated, moved or replaced by another of its kind.
// None if the bytes are not a message.
std::optional<std::string> mutated_model(std::string_view model, std::minstd_rand& random);

}  // namespace ingot::core::onnx::test
