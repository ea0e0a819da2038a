// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/pt2/calls.h"

#include <fstream>

#include "importers/aten/import.h"
#include "importers/aten/schemas.h"

namespace ingot::core::fuzz {
namespace {

using aten::ArgumentKind;

// The operators that are imported.
const std::vector<std::string>& targets() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> found;
    std::ifstream file(INGOT_SOURCE_DIR "/src/importers/aten/aten_schemas.def");
    for (std::string line; std::getline(file, line);) {
      const std::string target = "aten." + line.substr(0, line.find('('));
      if (line.find("->") != std::string::npos && aten::has_importer(target)) found.push_back(target);
    }
    return found;
  }();
  return all;
}

class Caller {
 public:
  Caller(std::vector<std::string> tensors, std::minstd_rand& random)
      : tensors_(std::move(tensors)), random_(random) {}

  Json arguments(const aten::Schema& schema) {
    Json list = Json::array();
    for (const aten::SchemaArgument& argument : schema.arguments) {
      if (argument.default_value && below(2) == 0) continue;
      list.push_back({{"name", argument.name}, {"arg", value(argument.type)}, {"kind", 1}});
    }
    return list;
  }

 private:
  size_t below(size_t count) { return count == 0 ? 0 : random_() % count; }

  int64_t integer() {
    static constexpr int64_t kNumbers[] = {0, 1, 2, 3, 4, 5, 8, -1, -2, -3, 1 << 20, INT64_MAX, INT64_MIN};
    return kNumbers[below(below(3) == 0 ? std::size(kNumbers) : 10)];
  }

  std::string tensor() { return tensors_[below(tensors_.size())]; }

  Json list_of(std::string_view tag, const auto& make) {
    Json items = Json::array();
    for (size_t count = below(5); count > 0; --count) items.push_back(make());
    return {{tag, items}};
  }

  Json value(const aten::SchemaType& type) {
    if (type.is_optional && below(3) == 0) return {{"as_none", true}};
    switch (type.kind) {
      case ArgumentKind::kTensor:
        if (!type.is_list) return {{"as_tensor", {{"name", tensor()}}}};
        if (!type.has_optional_elements)
          return list_of("as_tensors", [&] { return Json{{"name", tensor()}}; });
        return list_of("as_optional_tensors", [&]() -> Json {
          if (below(2) == 0) return {{"as_none", true}};
          return {{"as_tensor", {{"name", tensor()}}}};
        });
      case ArgumentKind::kInteger:
        if (type.is_list) return list_of("as_ints", [&] { return integer(); });
        return {{"as_int", integer()}};
      case ArgumentKind::kFloat:
        if (type.is_list) return list_of("as_floats", [&] { return 0.5 * static_cast<double>(integer()); });
        return {{"as_float", 0.5 * static_cast<double>(integer())}};
      case ArgumentKind::kBool:
        if (type.is_list) return list_of("as_bools", [&] { return below(2) == 0; });
        return {{"as_bool", below(2) == 0}};
      case ArgumentKind::kScalar:
        if (below(2) == 0) return {{"as_float", static_cast<double>(integer())}};
        return {{"as_int", integer()}};
      case ArgumentKind::kString: {
        static constexpr const char* kTexts[] = {"mean",  "sum",       "none", "tanh", "floor",
                                                 "trunc", "ij,jk->ik", "i...", ""};
        return {{"as_string", kTexts[below(std::size(kTexts))]}};
      }
      case ArgumentKind::kDType:
        return {{"as_scalar_type", 1 + below(13)}};
      case ArgumentKind::kMemoryFormat:
        return {{"as_memory_format", 1 + below(4)}};
      case ArgumentKind::kLayout:
      case ArgumentKind::kDevice:
      case ArgumentKind::kGenerator:
        break;
    }
    return {{"as_none", true}};
  }

  std::vector<std::string> tensors_;
  std::minstd_rand& random_;
};

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
  std::vector<std::string> tensors = tensors_before(graph, place);
  const auto schema = aten::find_schema(targets()[random() % targets().size()]);
  if (tensors.empty() || !schema) return;
  nodes.at(place).at("target") = "torch.ops." + schema->target;
  nodes.at(place).at("inputs") = Caller(std::move(tensors), random).arguments(*schema);
}

}  // namespace ingot::core::fuzz
