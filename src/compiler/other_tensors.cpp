// SPDX-License-Identifier: Apache-2.0
#include "compiler/other_tensors.h"

#include <map>
#include <optional>
#include <set>

#include "importers/aten/program/values_read.h"

namespace ingot::core {
namespace {

// A tensor of the model: a weight, named by the first weight that is the same tensor; a constant or initial
// state, by its digest; or neither, if nothing reads it.
struct Role {
  std::string weight;
  std::optional<Digest> digest;
};

std::map<std::string, Role> roles_by_name(const aten::Program& program, const aten::Imported& model) {
  std::map<ViewKey, std::string> weights;
  for (const aten::WeightSource& weight : model.weights)
    weights.emplace(key_of(weight.value.view), weight.name);
  const std::set<aten::ValueId> read = aten::values_read(program.graph);
  std::map<std::string, Role> roles;
  for (const aten::Input& input : program.graph.inputs) {
    if (input.kind == aten::InputKind::kUser || !input.data) continue;
    const auto weight = weights.find(key_of(input.data->view));
    Role& role = roles[input.name];
    if (weight != weights.end()) {
      role.weight = weight->second;
    } else if (read.contains(input.value)) {
      role.digest = tensor_digest(input.data->view);
    }
  }
  for (const aten::OtherName& other : program.other_names) {
    const auto same = roles.find(other.tied_to);
    roles.emplace(other.name, same == roles.end() ? Role{} : same->second);
  }
  return roles;
}

}  // namespace

std::vector<OtherTensor> other_tensors(const aten::Program& program, const aten::Imported& model,
                                       std::span<const SourceWeight> sources) {
  const std::map<std::string, Role> roles = roles_by_name(program, model);
  std::map<std::string, uint32_t> indices;  // of sources, by Role::weight
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < sources.size(); ++i) {
    names.insert(sources[i].name);
    if (const auto role = roles.find(sources[i].name); role != roles.end())
      indices.emplace(role->second.weight, i);
  }
  std::vector<OtherTensor> others;
  for (const auto& [name, role] : roles) {
    if (names.contains(name)) continue;
    OtherTensor& other = others.emplace_back(OtherTensor{.name = name, .tied_to = {}, .digest = role.digest});
    const auto source = role.weight.empty() ? indices.end() : indices.find(role.weight);
    if (source != indices.end()) other.tied_to = source->second;
  }
  return others;
}

}  // namespace ingot::core
