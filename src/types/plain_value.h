// SPDX-License-Identifier: Apache-2.0
// Values of a program that are not tensors: literal arguments and results of a call, attributes of a routine.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace ingot::core {

struct None {
  bool operator==(const None&) const = default;
};
using PlainValue = std::variant<None, bool, int64_t, double, std::string>;

std::string to_string(const PlainValue& value);  // "none", "true", "3", "0.5", "'text'"

// One flat input or output of a model's call.
struct TensorSlot {
  bool is_number = false;  // callers pass or get a number: an int, a float or a bool, by the tensor's dtype
  bool operator==(const TensorSlot&) const = default;
};
struct SizeSlot {  // an integer that the sizes of the tensors determine
  bool operator==(const SizeSlot&) const = default;
};
using CallSlot = std::variant<TensorSlot, SizeSlot, PlainValue>;  // PlainValue: a caller must repeat it

std::string to_string(const CallSlot& slot);  // "tensor", "size", or the value
inline bool is_tensor(const CallSlot& slot) { return std::holds_alternative<TensorSlot>(slot); }
inline bool is_number(const CallSlot& slot) {
  const auto* tensor = std::get_if<TensorSlot>(&slot);
  return tensor != nullptr && tensor->is_number;
}

// An attribute of an operator, as its routine receives it.
struct NamedValue {
  std::string name;
  PlainValue value;
  bool operator==(const NamedValue&) const = default;
};
using NamedValues = std::vector<NamedValue>;

}  // namespace ingot::core
