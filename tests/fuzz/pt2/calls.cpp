// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/pt2/calls.h"

#include <numeric>

#include "importers/aten/converters/converters.h"
#include "importers/aten/schema/schemas.h"
#include "tests/importers/aten/random_calls.h"

namespace ingot::core::fuzz {
namespace {

// The operators that are imported and have a schema.
const std::vector<aten::Schema>& schemas() {
  static const std::vector<aten::Schema> all = [] {
    std::vector<aten::Schema> found;
    for (const aten::Converter* converter : aten::all_converters()) {
      if (auto schema = aten::find_schema(converter->target)) found.push_back(std::move(*schema));
    }
    return found;
  }();
  return all;
}

// As an archive stores it; values without a tag become None.
struct ToJson {
  const std::vector<std::string>& tensors;

  Json operator()(const aten::ValueId& id) const { return {{"as_tensor", {{"name", tensors.at(id)}}}}; }
  Json operator()(const bool& value) const { return {{"as_bool", value}}; }
  Json operator()(const int64_t& value) const { return {{"as_int", value}}; }
  Json operator()(const double& value) const { return {{"as_float", value}}; }
  Json operator()(const std::string& value) const { return {{"as_string", value}}; }
  Json operator()(const DType& dtype) const { return {{"as_scalar_type", static_cast<int>(dtype)}}; }
  Json operator()(const auto&) const { return {{"as_none", true}}; }
  // One tag for the kind of all elements.
  Json operator()(const aten::ArgumentList& list) const {
    Json items = Json::array();
    std::string tag = "as_ints";
    bool has_none = false;
    for (const aten::Argument& item : list) {
      const Json json = std::visit(*this, item.value);
      has_none = has_none || json.contains("as_none");
      tag = json.contains("as_none") ? tag : json.begin().key() + "s";
      items.push_back(json);
    }
    if (has_none) return {{"as_optional_tensors", items}};
    for (Json& item : items) item = Json(item.begin().value());
    return {{tag, items}};
  }
};

Json arguments(const aten::Schema& schema, const std::vector<std::string>& tensors,
               std::minstd_rand& random) {
  std::vector<aten::ValueId> ids(tensors.size());
  std::iota(ids.begin(), ids.end(), 0);
  aten::test::RandomCalls calls(random, random() % 2 == 0, ids);
  Json list = Json::array();
  for (const aten::NamedArgument& argument : calls.arguments(schema)) {
    const Json value = std::visit(ToJson{tensors}, argument.argument.value);
    list.push_back({{"name", argument.name}, {"arg", value}, {"kind", 1}});
  }
  return list;
}

// The names of the tensors that the nodes before `end` and the inputs define.
std::vector<std::string> tensors_before(const Json& graph, size_t end) {
  std::vector<std::string> names;
  const auto add = [&](const Json& definition) {
    if (definition.contains("as_tensor")) names.push_back(definition["as_tensor"].at("name"));
  };
  for (const Json& input : graph.at("inputs")) add(input);
  for (size_t i = 0; i < end; ++i) {
    for (const Json& output : graph.at("nodes").at(i).at("outputs")) add(output);
  }
  return names;
}

}  // namespace

void change_call(Json& documents, std::minstd_rand& random) {
  Json& graph = documents.at("models/model.json").at("graph_module").at("graph");
  Json& nodes = graph.at("nodes");
  if (nodes.empty()) return;
  const size_t place = random() % nodes.size();
  const std::vector<std::string> tensors = tensors_before(graph, place);
  const aten::Schema& schema = schemas()[random() % schemas().size()];
  if (tensors.empty()) return;
  nodes.at(place).at("target") = "torch.ops." + schema.target;
  nodes.at(place).at("inputs") = arguments(schema, tensors, random);
}

}  // namespace ingot::core::fuzz
