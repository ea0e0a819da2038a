// SPDX-License-Identifier: Apache-2.0
// Attributes of a node: one list of values in the order of the op's fields. Each op describes its own struct
// once:
//
//   struct Softmax {
//     int64_t axis = -1;
//     static constexpr auto fields() { return std::tuple{Field{"axis", &Softmax::axis}}; }
//   };
//
// and printing, parsing, comparing, hashing and serialization all follow from fields().
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "types/tensor_type.h"

namespace ingot::core {

// Part of the canonical key: only append.
using AttributeValue = std::variant<bool, int64_t, double, std::string, DType, Dim, std::vector<int64_t>,
                                    std::vector<double>, std::vector<Dim>, Layout>;
using AttributeValues = std::vector<AttributeValue>;

std::string to_string(const AttributeValue& value);
AttributeValue parse_attribute(std::string_view text, size_t kind,
                               size_t rank_hint);  // kind: index in the variant

template <typename Member>
struct Field {
  std::string_view name;
  Member member;
};
template <typename Member>
Field(std::string_view, Member) -> Field<Member>;

// The part of an op's record that describes its attribute struct.
struct AttributeSchema {
  std::vector<std::string_view> (*names)() = [] { return std::vector<std::string_view>{}; };
  AttributeValues (*defaults)() = [] { return AttributeValues{}; };
};

template <typename Struct>
AttributeValues to_values(const Struct& attributes) {
  return std::apply(
      [&](const auto&... field) { return AttributeValues{AttributeValue(attributes.*field.member)...}; },
      Struct::fields());
}

template <typename Struct>
Struct from_values(std::span<const AttributeValue> values) {
  Struct attributes;
  size_t index = 0;
  auto read = [&](auto& target) {
    target = std::get<std::remove_reference_t<decltype(target)>>(values[index++]);
  };
  std::apply([&](const auto&... field) { (read(attributes.*field.member), ...); }, Struct::fields());
  return attributes;
}

template <typename Struct>
constexpr AttributeSchema attribute_schema() {
  return {.names =
              [] {
                return std::apply(
                    [](const auto&... field) { return std::vector<std::string_view>{field.name...}; },
                    Struct::fields());
              },
          .defaults = [] { return to_values(Struct{}); }};
}

}  // namespace ingot::core
