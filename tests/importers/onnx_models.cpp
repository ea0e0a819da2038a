// SPDX-License-Identifier: Apache-2.0
#include "tests/importers/onnx_models.h"

#include <algorithm>
#include <cctype>

namespace ingot::core::onnx::test {
namespace {

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  return bytes + static_cast<char>(value);
}

// Fields of the messages, as onnx.proto numbers them.
constexpr int kGraphNode = 1, kGraphInitializer = 5, kGraphInput = 11, kGraphOutput = 12;
constexpr int kFloat = 1, kInteger = 7, kBool = 9;

std::string outputs(const Names& names) {
  std::string fields;
  for (const std::string& name : names) fields += output(name);
  return fields;
}

// Whether the sum of `value` is above 0; both are results of the nodes around.
std::string is_positive(const std::string& value, const std::string& result) {
  return tensor("zero", kFloat, {}, raw<float>({0})) +
         node("ReduceSum", {value}, {"sum"}, integer_attribute("keepdims", 0)) +
         node("Greater", {"sum", "zero"}, {result});
}

std::string branches(const std::string& value) {
  return graph_attribute("then_branch", node("Mul", {value, "w"}, {"then"}) + output("then")) +
         graph_attribute("else_branch", node("Neg", {value}, {"else"}) + output("else"));
}

std::string weights() { return input("x", {"batch", "3"}) + tensor("w", kFloat, {3}, raw<float>({1, 2, 3})); }

}  // namespace

std::string number_field(int number, uint64_t value) {
  return varint(static_cast<uint64_t>(number) << 3) + varint(value);
}

std::string bytes_field(int number, const std::string& bytes) {
  return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}

std::string node(const std::string& op, const Names& inputs, const Names& outputs, const std::string& more) {
  std::string message;
  for (const std::string& name : inputs) message += bytes_field(1, name);
  for (const std::string& name : outputs) message += bytes_field(2, name);
  return bytes_field(kGraphNode, message + bytes_field(4, op) + more);
}

std::string integer_attribute(const std::string& name, int64_t value) {
  constexpr int kInteger = 2;  // AttributeProto.INT
  return bytes_field(
      5, bytes_field(1, name) + number_field(3, static_cast<uint64_t>(value)) + number_field(20, kInteger));
}

std::string graph_attribute(const std::string& name, const std::string& graph) {
  constexpr int kGraph = 5;  // AttributeProto.GRAPH
  return bytes_field(5, bytes_field(1, name) + bytes_field(6, graph) + number_field(20, kGraph));
}

std::string input(const std::string& name, const Names& dims, int64_t data_type) {
  std::string shape;
  for (const std::string& dim : dims) {
    const bool is_number =
        std::ranges::all_of(dim, [](unsigned char letter) { return std::isdigit(letter) != 0; });
    shape += bytes_field(1, is_number ? number_field(1, std::stoull(dim)) : bytes_field(2, dim));
  }
  const std::string type = number_field(1, static_cast<uint64_t>(data_type)) + bytes_field(2, shape);
  return bytes_field(kGraphInput, bytes_field(1, name) + bytes_field(2, bytes_field(1, type)));
}

std::string output(const std::string& name) { return bytes_field(kGraphOutput, bytes_field(1, name)); }

std::string tensor(const std::string& name, int64_t data_type, const std::vector<int64_t>& dims,
                   const std::string& raw) {
  std::string message;
  for (const int64_t dim : dims) message += number_field(1, static_cast<uint64_t>(dim));
  message += number_field(2, static_cast<uint64_t>(data_type)) + bytes_field(8, name) + bytes_field(9, raw);
  return bytes_field(kGraphInitializer, message);
}

std::string model(const std::string& graph, int64_t opset) {
  return number_field(1, 8) + bytes_field(2, "test") + bytes_field(7, graph) +
         bytes_field(8, number_field(2, static_cast<uint64_t>(opset)));
}

std::string small_model() {
  return model(
      input("x", {"batch", "4"}) +
      tensor("w", kFloat, {3, 4}, raw<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})) +
      tensor("b", kFloat, {3}, raw<float>({1, 0, -1})) + tensor("first", kInteger, {1}, raw<int64_t>({0})) +
      tensor("rest", kInteger, {1}, raw<int64_t>({-1})) +
      node("Gemm", {"x", "w", "b"}, {"h"}, integer_attribute("transB", 1)) + node("Relu", {"h"}, {"r"}) +
      node("Shape", {"x"}, {"s"}) + node("Gather", {"s", "first"}, {"n"}) +
      node("Concat", {"n", "rest"}, {"t"}, integer_attribute("axis", 0)) +
      node("Reshape", {"r", "t"}, {"f"}) + node("Softmax", {"f"}, {"y"}) + output("y"));
}

std::vector<std::string> control_models() {
  const std::string step =
      input("i", {}, kInteger) + input("go", {}, kBool) + input("s", {}) + node("Add", {"s", "w"}, {"next"});
  const std::string counts = step + node("Identity", {"go"}, {"on"}) + node("Mul", {"next", "x"}, {"row"}) +
                             outputs({"on", "next", "row"});
  const std::string ends = step + tensor("most", kFloat, {}, raw<float>({20})) +
                           node("ReduceSum", {"next"}, {"sum"}, integer_attribute("keepdims", 0)) +
                           node("Less", {"sum", "most"}, {"on"}) + outputs({"on", "next"});
  const std::string scans = input("s", {}) + input("row", {}) + node("Add", {"s", "row"}, {"next"}) +
                            is_positive("next", "c") + node("If", {"c"}, {"y"}, branches("next")) +
                            outputs({"next", "y"});
  return {
      model(weights() + is_positive("x", "c") + node("If", {"c"}, {"y"}, branches("x")) + output("y")),
      model(weights() + tensor("n", kInteger, {}, raw<int64_t>({3})) +
            node("Loop", {"n", "", "x"}, {"y", "rows"}, graph_attribute("body", counts)) +
            outputs({"y", "rows"})),
      model(weights() + is_positive("x", "c") +
            node("Loop", {"", "c", "x"}, {"y"}, graph_attribute("body", ends)) + output("y")),
      model(weights() +
            node("Scan", {"w", "x"}, {"y", "rows"},
                 integer_attribute("num_scan_inputs", 1) + graph_attribute("body", scans)) +
            outputs({"y", "rows"})),
  };
}

}  // namespace ingot::core::onnx::test
