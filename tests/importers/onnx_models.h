// SPDX-License-Identifier: Apache-2.0
// ONNX models as bytes, written field by field.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::core::onnx::test {

std::string number_field(int number, uint64_t value);
std::string bytes_field(int number, const std::string& bytes);

using Names = std::vector<std::string>;
std::string node(const std::string& op, const Names& inputs, const Names& outputs,
                 const std::string& more = {});
std::string integer_attribute(const std::string& name, int64_t value);
std::string graph_attribute(const std::string& name, const std::string& graph);
// Dims are numbers, or names of symbols.
std::string input(const std::string& name, const Names& dims, int64_t data_type = 1);
std::string output(const std::string& name);
std::string tensor(const std::string& name, int64_t data_type, const std::vector<int64_t>& dims,
                   const std::string& raw);
template <typename Number>
std::string raw(const std::vector<Number>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number)};
}

std::string model(const std::string& graph, int64_t opset = 18);
// Two linear layers, a chain of shapes and a softmax; x is [batch, 4].
std::string small_model();
// A branch on a value, a loop that counts and has a row per iteration, one that ends by a condition, and a
// scan with a branch in it; x is [batch, 3].
std::vector<std::string> control_models();

}  // namespace ingot::core::onnx::test
