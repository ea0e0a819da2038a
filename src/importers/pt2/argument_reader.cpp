// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "importers/pt2/graph_reader.h"
#include "importers/pt2/tensor_meta.h"
#include "support/error.h"

namespace ingot::core::pt2 {
namespace {

using aten::Argument;
using aten::ArgumentList;
using Reader = Argument (*)(Json, ValueScope&);

Argument read_none(Json, ValueScope&) { return {aten::None{}}; }
Argument read_tensor(Json value, ValueScope& scope) { return {scope.use(value.at("name").text())}; }
Argument read_integer(Json value, ValueScope&) { return {value.integer()}; }
Argument read_float(Json value, ValueScope&) { return {value.number()}; }
Argument read_complex(Json value, ValueScope&) {
  return {std::complex(value.at("real").number(), value.at("imag").number())};
}
Argument read_bool(Json value, ValueScope&) { return {value.boolean()}; }
Argument read_string(Json value, ValueScope&) { return {std::string(value.text())}; }
Argument read_scalar_type(Json value, ValueScope& scope) { return {read_dtype(value, scope.context())}; }
Argument read_format(Json value, ValueScope& scope) { return {read_memory_format(value, scope.context())}; }
Argument read_strided(Json value, ValueScope& scope) { return {read_layout(value, scope.context())}; }
Argument read_place(Json value, ValueScope&) { return {read_device(value)}; }
Argument read_operator(Json value, ValueScope&) { return {read_target(value)}; }
Argument read_nested_graph(Json value, ValueScope& scope) {
  return {std::make_shared<aten::Graph>(read_graph(value.at("graph"), scope.context()))};
}

Argument refuse_custom(Json value, ValueScope&) {
  throw UnsupportedError("INGOT-N506", fmt::format("an argument is a custom object of class '{}'",
                                                   value.at("class_fqn").text()));
}

// {"as_name": "sym_size"} or a number.
Argument read_symbolic(Json value, ValueScope& scope) {
  const auto [tag, content] = value.only_member();
  if (tag == "as_name") return {scope.use(content.text())};
  if (tag == "as_int") return {content.integer()};
  if (tag == "as_float") return {content.number()};
  if (tag == "as_bool") return {content.boolean()};
  refuse_unknown(scope.context(), "symbolic argument", tag);
}

Argument read_optional_tensor(Json value, ValueScope& scope) {
  const auto [tag, content] = value.only_member();
  if (tag == "as_tensor") return read_tensor(content, scope);
  if (tag == "as_none") return {aten::None{}};
  refuse_unknown(scope.context(), "optional tensor", tag);
}

template <Reader element>
Argument read_list(Json value, ValueScope& scope) {
  ArgumentList list;
  list.reserve(value.items().size());
  for (const Json item : value.items()) list.push_back(element(item, scope));
  return {std::move(list)};
}

Argument read_dictionary(Json value, ValueScope& scope) {
  ArgumentList pairs;
  for (const auto [key, content] : value.members())
    pairs.push_back({ArgumentList{{std::string(key)}, read_argument(content, scope)}});
  return {std::move(pairs)};
}

struct Tag {
  std::string_view name;
  Reader read;
};
constexpr auto kTags = std::to_array<Tag>({
    {"as_tensor", read_tensor},
    {"as_int", read_integer},
    {"as_ints", read_list<read_integer>},
    {"as_bool", read_bool},
    {"as_float", read_float},
    {"as_none", read_none},
    {"as_tensors", read_list<read_tensor>},
    {"as_sym_int", read_symbolic},
    {"as_sym_ints", read_list<read_symbolic>},
    {"as_optional_tensors", read_list<read_optional_tensor>},
    {"as_string", read_string},
    {"as_scalar_type", read_scalar_type},
    {"as_device", read_place},
    {"as_memory_format", read_format},
    {"as_layout", read_strided},
    {"as_floats", read_list<read_float>},
    {"as_bools", read_list<read_bool>},
    {"as_strings", read_list<read_string>},
    {"as_sym_bool", read_symbolic},
    {"as_sym_bools", read_list<read_symbolic>},
    {"as_sym_float", read_symbolic},
    {"as_sym_floats", read_list<read_symbolic>},
    {"as_optional_tensor", read_optional_tensor},
    {"as_nested_tensors", read_list<read_list<read_tensor>>},
    {"as_int_lists", read_list<read_list<read_integer>>},
    {"as_float_lists", read_list<read_list<read_float>>},
    {"as_graph", read_nested_graph},
    {"as_operator", read_operator},
    {"as_string_to_argument", read_dictionary},
    {"as_custom_obj", refuse_custom},
    {"as_complex", read_complex},
});

}  // namespace

Argument read_argument(Json value, ValueScope& scope) {
  const auto [tag, content] = value.only_member();
  const auto found = std::ranges::find(kTags, tag, &Tag::name);
  if (found == kTags.end()) refuse_unknown(scope.context(), "argument", tag);
  return found->read(content, scope);
}

Definition read_definition(Json value, const ReadContext& context) {
  const auto [tag, content] = value.only_member();
  if (tag == "as_tensor") return {{std::string(content.at("name").text())}};
  if (tag == "as_none") return {{std::nullopt}};
  if (tag == "as_sym_int" || tag == "as_sym_bool" || tag == "as_sym_float")
    return {{std::string(content.at("as_name").text())}};
  if (tag == "as_custom_obj") throw UnsupportedError("INGOT-N506", "a value is a custom object");
  if (tag != "as_tensors") refuse_unknown(context, "result", tag);
  Definition definition{.names = {}, .is_list = true};
  for (const Json tensor : content.items()) definition.names.emplace_back(tensor.at("name").text());
  return definition;
}

std::string read_target(Json value) {
  constexpr std::string_view kPrefix = "torch.ops.";
  const std::string_view target = value.text();
  return std::string(target.starts_with(kPrefix) ? target.substr(kPrefix.size()) : target);
}

}  // namespace ingot::core::pt2
