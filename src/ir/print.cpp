// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/literal.h"
#include "ir/text.h"

namespace ingot::core {
namespace {

std::string word_or_quoted(std::string_view name) { return is_word(name) ? std::string(name) : quote(name); }

// A comment must stay on its line.
std::string one_line(std::string text) {
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

std::string print_rank_sizes(const RankSizes& table) {
  std::string text;
  for (const RankAxis& axis : table.axes)
    text += fmt::format("{}{}/{}", text.empty() ? "" : " * ", quote(axis.group), axis.ranks);
  return fmt::format("{} [{}]", text, fmt::join(table.sizes, ", "));
}

std::string print_symbol(std::string_view name, const SymbolInfo& info) {
  std::string text(name);
  if (info.range != DimRange{}) {
    text += fmt::format(" in {}..", info.range.min);
    if (info.range.max != DimRange{}.max) text += std::to_string(info.range.max);
  }
  if (info.typical) text += fmt::format(" typical {}", *info.typical);
  if (info.upper_bound) text += " at most " + info.upper_bound->to_string();
  if (info.by_rank) text += " by rank of " + print_rank_sizes(*info.by_rank);
  return text;
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  // `indent` is that of the graph's own line.
  std::string print(const Graph& graph, const std::string& indent) {
    const std::string graph_name =
        options_.canonical ? fmt::format("g{}", graphs_++) : word_or_quoted(graph.name);
    // Names of an outer graph's values do not matter inside: nested graphs only see their own inputs.
    std::string text = fmt::format("{}graph {}({}) {{\n", indent, graph_name, inputs(graph));
    const std::string inner = indent + "  ";
    for (const auto& [name, info] : graph.symbols) {
      if (!declared_.contains(name)) text += fmt::format("{}symbol {}\n", inner, print_symbol(name, info));
    }
    for (const auto& node : graph.nodes()) text += print(*node, inner);
    for (const Update& update : graph.updates) {
      text += fmt::format("{}update {} = {}\n", inner, value(update.target), value(update.value));
    }
    const std::string outputs = list(graph.outputs, [&](const Value* output) { return value(output); });
    return text + fmt::format("{}return{}{}\n{}}}\n", inner, outputs.empty() ? "" : " ", outputs, indent);
  }

 private:
  template <typename Range, typename Function>
  static std::string list(const Range& range, Function&& print_one) {
    std::string text;
    for (const auto& element : range) text += (text.empty() ? "" : ", ") + print_one(element);
    return text;
  }

  std::string inputs(const Graph& graph) {
    return list(graph.inputs(), [&](const Value* input) {
      return fmt::format("{}: {}", value(input), input_type(input->type, graph.symbols));
    });
  }

  // Symbols are declared at their first use as a dim of an input.
  std::string input_type(const TensorType& type, const SymbolTable& symbols) {
    std::vector<std::string> dims;
    for (const Dim& dim : type.shape) {
      const bool is_new = dim.is_symbol() && symbols.contains(dim.symbol_name()) &&
                          declared_.insert(dim.symbol_name()).second;
      dims.push_back(is_new ? print_symbol(dim.symbol_name(), symbols.at(dim.symbol_name()))
                            : dim.to_string());
    }
    const bool has_blanks =
        std::ranges::any_of(dims, [](const std::string& dim) { return dim.find(' ') != dim.npos; });
    return fmt::format("{}[{}]{}", core::name(type.dtype), fmt::join(dims, has_blanks ? ", " : ","),
                       to_string(type.layout));
  }

  std::string value(const Value* value) {
    if (value == nullptr) return "none";
    if (!options_.canonical) return "%" + word_or_quoted(value->name);
    return fmt::format("%{}", numbers_.try_emplace(value, numbers_.size()).first->second);
  }

  std::string operands(const Node& node) {
    size_t count = node.operands.size();
    while (count > 0 && node.operands[count - 1] == nullptr) --count;
    return list(std::span(node.operands).first(count), [&](const Value* operand) { return value(operand); });
  }

  static std::string attributes(const Node& node) {
    if (node.literal != nullptr) return fmt::format(" {{value={}}}", print_literal(*node.literal));
    const auto names = node.op->attributes.names();
    const AttributeValues defaults = node.op->attributes.defaults();
    std::string text;
    for (size_t i = 0; i < node.values.size(); ++i) {
      const std::string value = to_string(node.values[i]);
      if (value == to_string(defaults[i])) continue;  // as text: -0 is not 0
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", names[i], value);
    }
    return text.empty() ? "" : " {" + text + "}";
  }

  std::string print(const Node& node, const std::string& indent) {
    std::string text = indent + list(node.results, [&](const Value* result) { return value(result); });
    text += fmt::format("{}{}({}){}", node.results.empty() ? "" : " = ", node.op->name, operands(node),
                        attributes(node));
    if (!node.graphs.empty()) {
      text += " {\n";
      for (const auto& graph : node.graphs) text += print(*graph, indent + "    ");
      text += indent + "  }";
    }
    if (!node.results.empty()) {
      text += " : " + list(node.results, [](const Value* result) { return to_string(result->type); });
    }
    const std::string source = node.source.to_string();
    if (options_.sources && !options_.canonical && !source.empty()) text += "   -- " + one_line(source);
    return text + "\n";
  }

  PrintOptions options_;
  size_t graphs_ = 0;
  std::unordered_map<const Value*, size_t> numbers_;
  std::unordered_set<std::string> declared_;
};

}  // namespace

std::string to_string(const Graph& graph, const PrintOptions& options) {
  return Printer(options).print(graph, "");
}

}  // namespace ingot::core
