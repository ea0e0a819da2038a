// SPDX-License-Identifier: Apache-2.0
#include "compiler/model_names.h"

#include "support/scanner.h"

namespace ingot::core {
namespace {

// Unambiguous: the name's length stands before it.
std::string key_of(std::string_view name, std::string_view source) {
  std::string key = std::to_string(name.size());
  return key.append(" ").append(name).append(source);
}

}  // namespace

ModelNames::ModelNames(const Graph& graph, const CanonicalGraph& canonical)
    : graph_(graph.name), sources_(canonical.sources) {
  for (uint32_t i = 0; i < sources_.size(); ++i) source_ids_.emplace(sources_[i], i);
  call_ids_.emplace(key_of("", ""), 0);
  calls_.emplace_back();
  const auto add_value = [&](const Value* value) {
    value_ids_.emplace(value->name, static_cast<uint32_t>(values_.size()));
    values_.push_back(value->name);
  };
  for (const Value* input : graph.inputs()) add_value(input);
  division_ = "calls";
  for (const Node* node : canonical.order) {
    division_.append(" ").append(std::to_string(add_call(*node)));
    for (const Value* result : node->results) add_value(result);
    for (const auto& nested : node->graphs) add_nested(*nested);
  }
  division_ += "\n";
}

void ModelNames::add_nested(const Graph& graph) {
  division_ += " {";
  for (const Value* input : graph.inputs()) division_.append(" ").append(quote(input->name));
  for (const auto& node : graph.nodes()) {
    division_.append(" ").append(std::to_string(add_call(*node)));
    for (const Value* result : node->results) division_.append(" ").append(quote(result->name));
    for (const auto& nested : node->graphs) add_nested(*nested);
  }
  division_ += " }";
}

uint32_t ModelNames::add_call(const Node& node) {
  std::string source = node.source.to_string();
  const auto [entry, is_new] =
      call_ids_.try_emplace(key_of(node.name, source), static_cast<uint32_t>(calls_.size()));
  if (is_new) calls_.push_back({node.name, std::move(source)});
  return entry->second;
}

std::optional<uint32_t> ModelNames::find_call(std::string_view name, std::string_view source) const {
  const auto found = call_ids_.find(key_of(name, source));
  return found == call_ids_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<uint32_t> ModelNames::find_value(const std::string& name) const {
  const auto found = value_ids_.find(name);
  return found == value_ids_.end() ? std::nullopt : std::optional(found->second);
}

uint32_t ModelNames::source_of(const Op& op, int64_t index) const { return source_ids_.at({&op, index}); }

std::string ModelNames::call_names() const {
  std::string text = "named";
  for (const ModelCall& call : calls_) text.append(" ").append(quote(call.name));
  return text + "\n";
}

}  // namespace ingot::core
