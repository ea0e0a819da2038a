// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "ir/constant.h"
#include "ir/literal.h"
#include "ir/node_rules.h"
#include "ir/parse_without_values.h"
#include "ir/storage_rules.h"
#include "ir/text.h"
#include "types/parse_type.h"

namespace ingot::core {
namespace {

constexpr int kMaximumDepth = 64;

// One graph being parsed: nested graphs see only their own values.
struct Scope {
  Graph* graph;
  std::map<std::string, Value*, std::less<>> values = {};
};

// The text of a node before it is added.
struct NodeText {
  size_t position = 0;
  std::vector<std::string> results = {};
  const Op* op = nullptr;
  std::vector<Value*> operands = {};
  AttributeValues values = {};
  std::shared_ptr<Tensor> literal = nullptr;
  std::vector<Graph> graphs = {};
  std::vector<TensorType> types = {};
};

class Parser {
 public:
  Parser(std::string_view text, const FindOp& find_op, Tensor (*read_literal)(Scanner&))
      : scanner_(text), find_op_(find_op), read_literal_(read_literal) {}

  Graph parse() {
    Graph graph = parse_graph(1);
    if (!scanner_.at_end()) scanner_.fail("unexpected text after the graph");
    return graph;
  }

 private:
  Graph parse_graph(int depth) {
    scanner_.expect("graph");
    if (depth > kMaximumDepth) scanner_.fail("graphs are nested too deeply");
    Graph graph(scanner_.word_or_quoted());
    Scope scope{&graph};
    SymbolTable* outer = symbols_;
    if (outer == nullptr) symbols_ = &graph.symbols;
    parse_inputs(scope, outer == nullptr);
    scanner_.expect("{");
    while (scanner_.accept("symbol")) parse_symbol_line(outer == nullptr);
    for (const Value* input : graph.inputs()) check_symbols(input->type);
    while (!scanner_.accept("return")) parse_statement(scope, depth);
    if (scanner_.next_is("%")) {
      do {
        graph.outputs.push_back(parse_value(scope));
      } while (scanner_.accept(","));
    }
    scanner_.expect("}");
    const std::string problem = outer == nullptr ? port_problem(graph, OutputLayouts::kAny) : "";
    if (!problem.empty()) scanner_.fail(problem);
    symbols_ = outer;
    return graph;
  }

  void parse_inputs(Scope& scope, bool declares) {
    scanner_.expect("(");
    if (scanner_.accept(")")) return;
    do {
      const std::string name = parse_new_name(scope);
      scanner_.expect(":");
      TensorType type = declares ? parse_declaring_type(scanner_, *symbols_) : parse_type(scanner_);
      const std::string problem = storage_problem(type);
      if (!problem.empty()) scanner_.fail(problem);
      scope.values[name] = scope.graph->add_input(name, std::move(type));
    } while (scanner_.accept(","));
    scanner_.expect(")");
  }

  void parse_symbol_line(bool declares) {
    if (!declares) scanner_.fail("symbols must be declared in the outermost graph");
    parse_symbol(scanner_, *symbols_);
  }

  void parse_statement(Scope& scope, int depth) {
    if (scanner_.accept("update")) {
      const size_t start = scanner_.next_position();
      Value* target = parse_value(scope);
      scanner_.expect("=");
      scope.graph->updates.push_back({target, parse_value(scope)});
      const std::string problem = update_problem(*scope.graph, scope.graph->updates.size() - 1);
      if (!problem.empty()) scanner_.fail(start, problem);
      return;
    }
    NodeText node;
    if (scanner_.next_is("%")) {
      do {
        node.results.push_back(parse_new_name(scope));
        scope.values[node.results.back()] = nullptr;  // the name is taken, but not defined yet
      } while (scanner_.accept(","));
      scanner_.expect("=");
    }
    parse_node(scope, node, depth);
    Node* added = scanner_.located(node.position, [&] { return add(*scope.graph, node); });
    if (added->results.size() != node.results.size()) {
      scanner_.fail(node.position, fmt::format("{} has {} results, not {}", node.op->name,
                                               added->results.size(), node.results.size()));
    }
    for (size_t i = 0; i < node.results.size(); ++i) {
      scope.graph->rename(added->results[i], node.results[i]);
      scope.values[node.results[i]] = added->results[i];
    }
    const std::string problem = storage_problem(*added);
    if (!problem.empty()) scanner_.fail(node.position, problem);
  }

  void parse_node(Scope& scope, NodeText& node, int depth) {
    node.position = scanner_.next_position();
    const std::string name(scanner_.word());
    node.op = name.empty() ? nullptr : find_op_(name);
    if (name.empty()) scanner_.fail("expected a statement");
    if (node.op == nullptr) scanner_.fail(node.position, fmt::format("there is no operator '{}'", name));
    parse_operands(scope, node);
    if (scanner_.next_is("{") && !graphs_follow()) parse_attributes(node);
    if (scanner_.accept("{")) {
      while (!scanner_.accept("}")) node.graphs.push_back(parse_graph(depth + 1));
    }
    if (!scanner_.accept(":")) return;
    do {
      node.types.push_back(parse_type(scanner_));
      check_symbols(node.types.back());
    } while (scanner_.accept(","));
  }

  void parse_operands(Scope& scope, NodeText& node) {
    scanner_.expect("(");
    if (scanner_.accept(")")) return;
    do {
      node.operands.push_back(scanner_.accept("none") ? nullptr : parse_value(scope));
    } while (scanner_.accept(","));
    scanner_.expect(")");
  }

  // Whether the next brace opens graphs rather than attributes.
  bool graphs_follow() {
    const size_t start = scanner_.position();
    scanner_.expect("{");
    const bool is_attribute = !scanner_.accept("graph") || scanner_.next_is("=");
    scanner_.move_to(start);
    return !is_attribute;
  }

  void parse_attributes(NodeText& node) {
    node.values = node.op->attributes.defaults();
    scanner_.expect("{");
    if (scanner_.accept("}")) return;
    do {
      parse_attribute_of(node);
    } while (scanner_.accept(","));
    scanner_.expect("}");
  }

  void parse_attribute_of(NodeText& node) {
    const size_t start = scanner_.next_position();
    const std::string name(scanner_.word());
    scanner_.expect("=");
    if (node.op == &ops::constant && name == "value") {
      node.literal = std::make_shared<Tensor>(read_literal_(scanner_));
      return;
    }
    const auto names = node.op->attributes.names();
    const auto found = std::ranges::find(names, name);
    if (found == names.end())
      scanner_.fail(start, fmt::format("{} has no attribute '{}'; it has {}", node.op->name, name,
                                       names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
    AttributeValue& value = node.values[static_cast<size_t>(found - names.begin())];
    const bool has_rank = !node.operands.empty() && node.operands[0] != nullptr;
    const size_t value_start = scanner_.next_position();
    const std::string_view text = scanner_.raw_until(",}");
    value = scanner_.located(value_start, [&] {
      return parse_attribute(text, value.index(),
                             has_rank ? node.operands[0]->type.rank() : shape_rank(node));
    });
    check_symbols(value);
  }

  // Rank of a source: of its shape attribute.
  static size_t shape_rank(const NodeText& node) {
    for (const AttributeValue& value : node.values) {
      if (const auto* shape = std::get_if<std::vector<Dim>>(&value)) return shape->size();
    }
    return 0;
  }

  Node* add(Graph& graph, NodeText& node) {
    if (node.literal != nullptr) {
      Node* added = graph.add_constant(std::move(*node.literal))->producer;
      check_types(*added, node);
      return added;
    }
    const bool is_given = node.op->infer == nullptr || !node.graphs.empty();
    Node* added = is_given ? graph.add_with_graphs(*node.op, std::move(node.operands), std::move(node.values),
                                                   std::move(node.graphs), node.types)
                           : graph.add(*node.op, std::move(node.operands), std::move(node.values));
    if (!is_given) check_types(*added, node);
    return added;
  }

  // Types may be left out. Layouts are taken from the text: they are chosen, not inferred.
  static void check_types(const Node& added, const NodeText& node) {
    if (node.types.empty()) return;
    if (node.types.size() != added.results.size()) {
      throw UserError("INGOT-U113", fmt::format("{} has {} results", node.op->name, added.results.size()));
    }
    for (size_t i = 0; i < node.types.size(); ++i) {
      TensorType& inferred = added.results[i]->type;
      if (inferred.dtype != node.types[i].dtype || inferred.shape != node.types[i].shape) {
        throw UserError("INGOT-U113", fmt::format("the result of {} is {}, not {}", node.op->name,
                                                  to_string(inferred), to_string(node.types[i])));
      }
      inferred.layout = node.types[i].layout;
    }
  }

  std::string parse_new_name(const Scope& scope) {
    scanner_.expect("%");
    const size_t start = scanner_.next_position();
    std::string name = scanner_.word_or_quoted();
    if (scope.values.contains(name)) scanner_.fail(start, fmt::format("%{} is defined twice", name));
    return name;
  }

  Value* parse_value(const Scope& scope) {
    scanner_.expect("%");
    const size_t start = scanner_.next_position();
    const std::string name = scanner_.word_or_quoted();
    const auto found = scope.values.find(name);
    if (found == scope.values.end() || found->second == nullptr) {
      scanner_.fail(start, fmt::format("%{} is not defined here", name));
    }
    return found->second;
  }

  void check_symbols(const Dim& dim) {
    for (const std::string& symbol : dim.symbols()) {
      if (!symbols_->contains(symbol)) scanner_.fail(fmt::format("the symbol {} is not declared", symbol));
    }
  }
  void check_symbols(const TensorType& type) {
    for (const Dim& dim : type.shape) check_symbols(dim);
  }
  void check_symbols(const AttributeValue& value) {
    if (const auto* dim = std::get_if<Dim>(&value)) check_symbols(*dim);
    if (const auto* dims = std::get_if<std::vector<Dim>>(&value)) {
      for (const Dim& dim : *dims) check_symbols(dim);
    }
  }

  Scanner scanner_;
  const FindOp& find_op_;
  Tensor (*read_literal_)(Scanner&);
  SymbolTable* symbols_ = nullptr;  // of the outermost graph
};

}  // namespace

Graph parse_graph(std::string_view text, const FindOp& find_op) {
  return Parser(text, find_op, &parse_literal).parse();
}

Graph parse_without_values(std::string_view text, const FindOp& find_op) {
  return Parser(text, find_op, &parse_literal_or_digest).parse();
}

}  // namespace ingot::core
