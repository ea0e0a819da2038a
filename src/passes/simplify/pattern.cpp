// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/pattern.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ir/side.h"
#include "ops/generate.h"
#include "ops/ops.h"
#include "passes/one_user.h"
#include "support/error.h"

namespace ingot::core::rewriting {
namespace {

constexpr double kSameFraction =
    1e-6;  // tolerance between a rule's digits and a constant of the model in f32

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), rest_(text) {}

  Term parse() {
    Term term = parse_term();
    require(rest_.empty());
    return term;
  }

 private:
  Term parse_term() {
    Term term;
    if (const auto number = parse_number()) {
      term.kind = Term::Kind::kNumber;
      term.number = *number;
      return term;
    }
    std::string word(parse_word());
    if (accept(":")) {
      term.name = std::move(word);
      word = parse_word();
    }
    if (!accept("(")) {
      require(term.name.empty() && !word.empty());
      term.name = std::move(word);
      return term;
    }
    parse_call(term, word);
    return term;
  }

  void parse_call(Term& term, std::string_view op) {
    term.kind = Term::Kind::kCall;
    term.op = ops::find_op(op);
    require(term.op != nullptr);
    if (accept("...")) {
      term.any_operands = true;
      require(accept(")"));
    } else if (!accept(")")) {
      do {
        term.operands.push_back(parse_term());
      } while (accept(","));
      require(accept(")"));
    }
    if (!accept("{")) return;
    term.values = term.op->attributes.defaults();
    do {
      parse_attribute_of(term);
    } while (accept(","));
    require(accept("}"));
  }

  void parse_attribute_of(Term& term) {
    const std::string_view name = parse_word();
    const auto names = term.op->attributes.names();
    const auto found = std::ranges::find(names, name);
    require(found != names.end() && accept("="));
    AttributeValue& value = term.values[static_cast<size_t>(found - names.begin())];
    value = parse_attribute(parse_word(), value.index(), 0);
  }

  std::optional<double> parse_number() {
    skip_blanks();
    if (rest_.empty() || (rest_[0] != '-' && (rest_[0] < '0' || rest_[0] > '9'))) return std::nullopt;
    double value = 0;
    const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    require(error == std::errc());
    rest_.remove_prefix(static_cast<size_t>(stop - rest_.data()));
    return value;
  }

  std::string_view parse_word() {
    skip_blanks();
    const size_t end =
        std::min(rest_.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789"), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }

  void skip_blanks() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }

  bool accept(std::string_view expected) {
    skip_blanks();
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    skip_blanks();
    return true;
  }

  void require(bool condition) const { invariant(condition, "invalid rule: " + std::string(text_)); }

  std::string_view text_, rest_;
};

bool is_same_number(double wanted, double found) {
  const bool is_fraction = wanted != std::floor(wanted);
  return wanted == found || (is_fraction && std::abs(wanted - found) <= kSameFraction * std::abs(wanted));
}

std::optional<double> number_of_full(const Node& node) {
  const auto full = node.attributes<ops::Full>();
  if (is_floating(full.dtype)) return full.value;
  const auto integer = full.integer.constant();
  return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
}

}  // namespace

Term parse_term(std::string_view text) { return Parser(text).parse(); }

Value* Match::value(std::string_view name) const {
  const auto found = std::ranges::find(bindings_, name, [](const auto& binding) { return binding.first; });
  invariant(found != bindings_.end(), "a rule's function uses a word that its term lacks");
  return found->second;
}

bool Match::is_used_once(std::string_view name) const {
  const Value* used = value(name);
  return has_one_user(*graph_, used);
}

bool Match::bind(const std::string& name, Value* value) {
  const auto found = std::ranges::find(bindings_, name, [](const auto& binding) { return binding.first; });
  if (found != bindings_.end()) return found->second == value;
  bindings_.emplace_back(name, value);
  return true;
}

bool Match::fits(const Term& term, Value* value) {
  if (value == nullptr) return false;
  switch (term.kind) {
    case Term::Kind::kAny:
      return bind(term.name, value);
    case Term::Kind::kNumber: {
      const auto number = number_everywhere(value);
      return number && is_same_number(term.number, *number);
    }
    case Term::Kind::kCall:
      return fits_call(term, value);
  }
  return false;
}

bool Match::fits_call(const Term& term, Value* value) {
  const Node* node = value->producer;
  if (node == nullptr || node->op != term.op || node->results.size() != 1) return false;
  if (!node->operands.empty() && !are_on_one_side(*node, *root_)) return false;
  if (!term.values.empty() && node->values != term.values) return false;
  if (!term.name.empty() && !bind(term.name, value)) return false;
  const auto before = bindings_;
  if (fits_operands(term, node->operands)) return true;
  if (!term.op->traits.has(Trait::kCommutative) || node->operands.size() != 2) return false;
  bindings_ = before;
  return fits_operands(term, {node->operands[1], node->operands[0]});
}

bool Match::fits_operands(const Term& term, const std::vector<Value*>& operands) {
  if (term.any_operands) return true;
  for (size_t i = 0; i < std::max(term.operands.size(), operands.size()); ++i) {
    const bool is_absent = i >= term.operands.size() && operands[i] == nullptr;
    if (is_absent) continue;
    if (i >= term.operands.size() || i >= operands.size() || !fits(term.operands[i], operands[i]))
      return false;
  }
  return true;
}

std::optional<Match> match(const Graph& graph, const Term& term, Node& root) {
  Match result;
  result.graph_ = &graph;
  result.root_ = &root;
  if (root.results.size() != 1 || !result.fits(term, root.results[0])) return std::nullopt;
  return result;
}

Value* build(Graph& graph, const Term& term, const Match& match) {
  if (term.kind == Term::Kind::kAny) return match.value(term.name);
  if (term.kind == Term::Kind::kNumber) return add_number(graph, term.number, match.dtype());
  std::vector<Value*> operands;
  for (const Term& operand : term.operands) operands.push_back(build(graph, operand, match));
  return graph.call(*term.op, std::move(operands), term.values);
}

std::optional<double> number_everywhere(const Value* value) {
  const Node* node = value->producer;
  while (node != nullptr && (node->op == &ops::expand || node->op == &ops::reshape))
    node = node->operands[0]->producer;
  if (node == nullptr) return std::nullopt;
  if (node->op == &ops::full) return number_of_full(*node);
  if (node->literal == nullptr || node->literal->elements() != 1 || is_complex(node->literal->dtype))
    return std::nullopt;
  return read_double(node->literal->view(), std::vector<int64_t>(node->literal->shape.size(), 0));
}

Value* add_number(Graph& graph, double number, DType dtype, Shape shape) {
  ops::Full full{.value = 0, .integer = 0, .dtype = dtype, .shape = std::move(shape)};
  if (is_floating(dtype)) {
    full.value = number;
  } else {
    full.integer = static_cast<int64_t>(number);
  }
  return graph.call(ops::full, {}, full);
}

}  // namespace ingot::core::rewriting
