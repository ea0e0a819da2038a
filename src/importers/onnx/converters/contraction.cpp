// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include <array>

#include "importers/onnx/converters/converters.h"
#include "ir/elementwise.h"
#include "ops/reshape.h"

namespace ingot::core::onnx {
namespace {

// Whether nothing but stored values decides it: then rearranging it costs nothing in a run.
bool is_stored(const Value* value) {
  const Node* node = value->producer;
  if (node == nullptr) return false;
  if (node->op->traits.has(Trait::kSource) || node->literal != nullptr) return true;
  if (!computes_elements(*node) || node->operands.empty()) return false;
  for (const Value* operand : node->operands) {
    if (operand != nullptr &&
        (operand->producer == nullptr || !operand->producer->operands.empty() || !is_stored(operand)))
      return false;
  }
  return true;
}

Value* matrix_product(Graph& graph, Value* a, Value* b) {
  const Shape &left = a->type.shape, &right = b->type.shape;
  if (left.back() != right[right.size() - 2])
    refuse("it is not known that " + to_string(left) + " and " + to_string(right) +
           " have the same inner size");
  if (right.size() == 2 && is_stored(b))
    return graph.call(ops::linear, {a, transposed(graph, b, {1, 0}), nullptr});
  broadcast(Shape(left.begin(), left.end() - 2), Shape(right.begin(), right.end() - 2));
  return graph.call(ops::matmul, {a, b});
}

// Vectors become matrices, as in numpy.
Value* product_of(Graph& graph, Value* a, Value* b) {
  const bool is_row = a->type.rank() == 1, is_column = b->type.rank() == 1;
  if (a->type.rank() == 0 || b->type.rank() == 0) refuse_node("an operand has no dims");
  if (is_row) a = unsqueezed(graph, a, 0);
  if (is_column) b = unsqueezed(graph, b, 1);
  Value* product = matrix_product(graph, a, b);
  if (is_column) product = without_axis(graph, product, product->type.rank() - 1);
  if (is_row) product = without_axis(graph, product, product->type.rank() - (is_column ? 1 : 2));
  return product;
}

void convert_matmul(Call& call) { call.give(product_of(call.graph(), call.tensor(0), call.tensor(1))); }

Value* scaled(Graph& graph, Value* value, double factor) {
  return factor == 1 ? value : static_cast<Value*>(Term(graph, value) * factor);
}

// alpha * A * B + beta * C, either matrix transposed.
void convert_gemm(Call& call) {
  Graph& graph = call.graph();
  Value *a = call.tensor(0), *b = call.tensor(1), *c = call.optional_tensor(2);
  if (a->type.rank() != 2 || b->type.rank() != 2) refuse_node("the operands must be matrices");
  if (call.flag("transA")) a = transposed(graph, a, {1, 0});
  const double alpha = call.attribute_number("alpha", 1), beta = call.attribute_number("beta", 1);
  const bool has_columns = call.flag("transB");
  const Shape& weight = b->type.shape;
  const Dim columns = weight[has_columns ? 0 : 1];
  const bool has_bias = c != nullptr && c->type.shape == Shape{columns} && alpha == 1 && beta == 1;
  Value* product = nullptr;
  if (has_columns || has_bias || is_stored(b)) {
    Value* rows = has_columns ? b : transposed(graph, b, {1, 0});
    if (a->type.shape[1] != rows->type.shape[1])
      refuse("it is not known that the operands have the same inner size");
    product = graph.call(ops::linear, {a, rows, has_bias ? c : nullptr});
  } else {
    product = matrix_product(graph, a, b);
  }
  product = scaled(graph, product, alpha);
  if (c != nullptr && !has_bias && beta != 0) {
    broadcast(product->type.shape, c->type.shape);
    product = Term(graph, product) + Term(graph, scaled(graph, c, beta));
  }
  call.give(product);
}

// Zero points of a per row, of b per column.
Value* centered(Call& call, size_t value, size_t zero_point, bool is_row) {
  Graph& graph = call.graph();
  Value* x = converted(graph, call.tensor(value), DType::kI32);
  if (!call.has(zero_point)) return x;
  Value* zero = converted(graph, call.tensor(zero_point), DType::kI32);
  if (is_row && zero->type.rank() == 1 && zero->type.shape[0] != Dim(1)) zero = unsqueezed(graph, zero, 1);
  broadcast(x->type.shape, zero->type.shape);
  return Term(graph, x) - Term(graph, zero);
}

void convert_matmul_integer(Call& call) {
  call.give(product_of(call.graph(), centered(call, 0, 2, true), centered(call, 1, 3, false)));
}

constexpr auto kContraction = std::to_array<Converter>({
    {"Gemm", convert_gemm, nullptr, 7},
    {"MatMul", convert_matmul},
    {"MatMulInteger", convert_matmul_integer, nullptr, 10},
});

}  // namespace

std::span<const Converter> contraction_converters() { return kContraction; }

}  // namespace ingot::core::onnx
