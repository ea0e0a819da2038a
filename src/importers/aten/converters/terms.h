// SPDX-License-Identifier: Apache-2.0
// Formulas over imported values, written as arithmetic. Operands broadcast and have the same dtype; a number
// takes the dtype of the other operand.
#pragma once

#include <vector>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/promotion.h"
#include "ops/reduce.h"

namespace ingot::core::aten {

class Term {
 public:
  Term(Call& call, core::Value* value) : call_(&call), value_(value) {}
  core::Value* value() const { return value_; }

  Term apply(const Op& op) const { return {*call_, emit(*call_, op, {value_})}; }
  Term apply(const Op& op, const Term& other) const {
    return {*call_, emit(*call_, op, {value_, other.value_})};
  }
  Term apply(const Op& op, double number) const { return apply(op, constant(number)); }
  Term constant(double number) const { return {*call_, scalar(call_->graph(), number, dtype())}; }
  Term choose(const Term& then, const Term& otherwise) const {  // by this bool
    return {*call_, emit(*call_, ops::select, {value_, then.value_, otherwise.value_})};
  }
  Term reduce(const Op& op, std::vector<int64_t> axes, bool keep_dims = false) const {
    return {*call_, emit(*call_, op, {value_}, ops::Reduce{std::move(axes), keep_dims})};
  }
  Term to(DType dtype) const { return {*call_, converted(call_->graph(), value_, dtype)}; }

  Call& call() const { return *call_; }
  DType dtype() const { return value_->type.dtype; }
  const Shape& shape() const { return value_->type.shape; }

 private:
  Call* call_;
  core::Value* value_;
};

inline Term operator+(const Term& a, const Term& b) { return a.apply(ops::add, b); }
inline Term operator-(const Term& a, const Term& b) { return a.apply(ops::subtract, b); }
inline Term operator*(const Term& a, const Term& b) { return a.apply(ops::multiply, b); }
inline Term operator-(const Term& a) { return a.apply(ops::negate); }
inline Term operator+(const Term& a, double b) { return a.apply(ops::add, b); }
inline Term operator-(const Term& a, double b) { return a.apply(ops::subtract, b); }
inline Term operator<(const Term& a, double b) { return a.apply(ops::less, b); }
inline Term operator!(const Term& a) { return a.apply(ops::logical_not); }

inline Term filled_like(const Term& a, double value) {
  return {a.call(), filled(a.call(), a.shape(), value, a.dtype())};
}

// A tensor operand of the call.
inline Term operand_term(Call& call, std::string_view name) { return {call, call.tensor(name)}; }

}  // namespace ingot::core::aten
