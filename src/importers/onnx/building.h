// SPDX-License-Identifier: Apache-2.0
// Short notation for the nodes that converters build; each returns its operand if there is nothing to do.
// What is not known to be right is an UnsupportedError INGOT-N541, to which the importer adds the node.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/ops.h"

namespace ingot::core::onnx {

[[noreturn]] void refuse(std::string reason);
inline void require(bool condition, const char* reason) {
  if (!condition) refuse(reason);
}

std::vector<int64_t> all_axes(size_t rank);  // 0, 1, ...
const Dim& dim_of(const Value* value, size_t axis);
Value* reshaped(Graph& graph, Value* value, Shape shape);
Value* expanded(Graph& graph, Value* value, Shape shape);
Value* transposed(Graph& graph, Value* value, std::vector<int64_t> order);
Value* sliced(Graph& graph, Value* value, size_t axis, const Dim& start, const Dim& end, int64_t step = 1);
Value* unsqueezed(Graph& graph, Value* value, size_t axis);
Value* without_axis(Graph& graph, Value* value, size_t axis);  // of size 1
Value* concatenated(Graph& graph, std::vector<Value*> values, size_t axis);
Value* converted(Graph& graph, Value* value, DType dtype);
Value* scalar(Graph& graph, double value, DType dtype);
Value* size_scalar(Graph& graph, const Dim& size, DType dtype);
Value* filled(Graph& graph, Shape shape, double value, DType dtype);
Value* counting(Graph& graph, const Dim& extent, DType dtype = DType::kI64);  // 0, 1, ...
// Integers that count from the end if they are negative, as indices into a dim of `size`.
Value* wrapped_indices(Graph& graph, Value* indices, const Dim& size);

// The shape that all broadcast to.
Shape broadcast(const Shape& a, const Shape& b);
// total / part, if that is known to leave no remainder. Factors are given one by one.
std::optional<Dim> exact_quotient(const Shape& total, const Shape& part);

// min(max(x, low), high) of dims, without an extremum where the symbols' ranges decide.
Dim clamped(const Dim& value, const Dim& low, const Dim& high, const SymbolTable& symbols);

// Formulas over values of the same dtype, written as arithmetic.
class Term {
 public:
  Term(Graph& graph, Value* value) : graph_(&graph), value_(value) {}
  operator Value*() const { return value_; }  // NOLINT: a formula's result is a value

  Term apply(const Op& op) const { return {*graph_, graph_->call(op, {value_})}; }
  Term apply(const Op& op, const Term& other) const {
    return {*graph_, graph_->call(op, {value_, other.value_})};
  }
  Term constant(double number) const { return {*graph_, scalar(*graph_, number, value_->type.dtype)}; }
  Term choose(const Term& then, const Term& otherwise) const {  // by this bool
    return {*graph_, graph_->call(ops::select, {value_, then.value_, otherwise.value_})};
  }
  Term to(DType dtype) const { return {*graph_, converted(*graph_, value_, dtype)}; }

 private:
  Graph* graph_;
  Value* value_;
};

inline Term operator+(const Term& a, const Term& b) { return a.apply(ops::add, b); }
inline Term operator-(const Term& a, const Term& b) { return a.apply(ops::subtract, b); }
inline Term operator*(const Term& a, const Term& b) { return a.apply(ops::multiply, b); }
inline Term operator/(const Term& a, const Term& b) { return a.apply(ops::divide, b); }
inline Term operator+(const Term& a, double b) { return a + a.constant(b); }
inline Term operator-(const Term& a, double b) { return a - a.constant(b); }
inline Term operator*(const Term& a, double b) { return a * a.constant(b); }
inline Term operator/(const Term& a, double b) { return a / a.constant(b); }
inline Term operator-(double a, const Term& b) { return b.constant(a) - b; }
inline Term operator-(const Term& a) { return a.apply(ops::negate); }
inline Term operator<(const Term& a, double b) { return a.apply(ops::less, a.constant(b)); }
inline Term operator>(const Term& a, double b) { return a.apply(ops::greater, a.constant(b)); }

}  // namespace ingot::core::onnx
