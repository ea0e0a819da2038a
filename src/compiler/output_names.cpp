// SPDX-License-Identifier: Apache-2.0
#include "compiler/output_names.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

namespace ingot::core {
namespace {

using Json = nlohmann::json;

constexpr int kMostLevels = 64;  // nested containers; a file may claim any number

Json parsed(const std::string& text) { return Json::parse(text, nullptr, /*allow_exceptions=*/false); }

// The keys of a container, if it has any: torch stores a class's context as JSON in a string. A dict's are a
// list, a dataclass's are followed by the list of the fields that are None.
Json keys_of(const Json& spec, size_t children) {
  const auto context = spec.find("context");
  if (context == spec.end() || !context->is_string()) return {};
  Json keys = parsed(context->get<std::string>());
  if (keys.is_object()) keys = keys.value("dict_context", Json());
  if (keys.is_array() && keys.size() == 2 && keys[0].is_array()) keys = Json(keys[0]);
  const auto is_key = [](const Json& key) { return key.is_string() || key.is_number_integer(); };
  const bool fits = keys.is_array() && keys.size() == children && std::ranges::all_of(keys, is_key);
  return fits ? keys : Json();
}

std::string path_to(const std::string& parent, const Json& keys, size_t position) {
  const Json key = keys.is_null() ? Json() : keys[position];
  const bool has_name = key.is_string() && key != "";
  const std::string last = has_name                  ? key.get<std::string>()
                           : key.is_number_integer() ? key.dump()
                                                     : std::to_string(position);
  if (!parent.empty()) return parent + "." + last;
  return has_name ? last : "output_" + last;
}

// Appends the path of each leaf below `spec`; false if it is not a tree of torch.
bool add_paths(const Json& spec, const std::string& path, int level, std::vector<std::string>& paths) {
  if (level > kMostLevels || !spec.is_object()) return false;
  const auto type = spec.find("type"), children = spec.find("children_spec");
  if (type == spec.end() || children == spec.end() || !children->is_array()) return false;
  if (type->is_null()) {
    paths.push_back(path.empty() ? "output_0" : path);
    return true;
  }
  const Json keys = keys_of(spec, children->size());
  for (size_t i = 0; i < children->size(); ++i) {
    if (!add_paths((*children)[i], path_to(path, keys, i), level + 1, paths)) return false;
  }
  return true;
}

std::vector<std::string> paths_of(const std::string& tree, size_t leaves) {
  std::vector<std::string> paths;
  const Json spec = parsed(tree);  // [protocol, tree]
  const bool fits =
      spec.is_array() && spec.size() == 2 && add_paths(spec[1], "", 0, paths) && paths.size() == leaves;
  if (fits) return paths;
  paths.clear();
  for (size_t i = 0; i < leaves; ++i) paths.push_back("output_" + std::to_string(i));
  return paths;
}

// A dict may have the keys "a.b" and "a".
std::string unused(const std::string& name, const std::set<std::string>& used) {
  std::string result = name;
  for (int count = 2; used.contains(result); ++count) result = name + "_" + std::to_string(count);
  return result;
}

}  // namespace

std::vector<std::string> output_names(const aten::Program& program, const aten::Imported& model) {
  const std::vector<CallSlot>& slots = model.output_slots;
  const bool has_names = program.output_names.size() == slots.size();
  const std::vector<std::string> paths =
      has_names ? program.output_names : paths_of(program.output_tree, slots.size());
  std::vector<std::string> names;
  std::set<std::string> used;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!is_tensor(slots[i])) continue;
    names.push_back(unused(paths[i], used));
    used.insert(names.back());
  }
  return names;
}

}  // namespace ingot::core
