// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numbers>
#include <span>

#include "importers/aten/composites/composite.h"
#include "importers/aten/composites/tokens.h"
#include "support/error.h"

namespace ingot::core::aten {
namespace {

using Words = std::vector<std::string_view>;

// Operators of two operands, from those that bind loosest; as in Python.
const std::vector<Words>& levels() {
  static const std::vector<Words> kLevels = {{"or"},
                                             {"and"},
                                             {"<", "<=", ">", ">=", "==", "!=", "is", "in"},
                                             {"|"},
                                             {"^"},
                                             {"&"},
                                             {"+", "-"},
                                             {"*", "/", "//", "%", "@"}};
  return kLevels;
}

Expression operation(std::string_view name, std::vector<Expression> parts) {
  return {.kind = Expression::Kind::kOperator, .text = std::string(name), .parts = std::move(parts)};
}
Expression literal(Argument value) {
  return {.kind = Expression::Kind::kLiteral, .literal = std::move(value)};
}

class CompositeParser {
 public:
  explicit CompositeParser(std::span<const Token> tokens) : tokens_(tokens) {}

  // "kind name(parameters) = results", with steps on lines of their own before the results.
  Composite row() {
    Composite composite;
    composite.kind = kind();
    composite.target = take(Token::Kind::kName);
    if (composite.kind != Composite::Kind::kLocal) complete(composite.target);
    expect("(");
    while (!accept(")")) {
      composite.parameters.emplace_back(take(Token::Kind::kName));
      accept(",");
    }
    expect("=");
    accept_line_end();
    while (tokens_[0].kind == Token::Kind::kName && tokens_[1].text == "=") {
      std::string name(take(Token::Kind::kName));
      expect("=");
      composite.steps.push_back({std::move(name), choice()});
      accept_line_end();
    }
    do composite.results.push_back(choice());
    while (accept(","));
    accept_line_end();
    take(Token::Kind::kEnd);
    return composite;
  }

 private:
  // "frac" is "aten.frac.default"; a name with two dots, of another library, is complete.
  static void complete(std::string& target) {
    const auto dots = std::ranges::count(target, '.');
    const bool is_prim = target.starts_with("prims.");
    if (dots == (is_prim ? 1 : 0)) target += ".default";
    if (dots < 2 && !is_prim) target.insert(0, "aten.");
  }
  Composite::Kind kind() {
    if (accept_word("whole")) return Composite::Kind::kWhole;
    if (accept_word("complex")) return Composite::Kind::kComplex;
    if (accept_word("both")) return Composite::Kind::kBoth;
    if (accept_word("kept")) return Composite::Kind::kKeptComplex;
    return accept_word("local") ? Composite::Kind::kLocal : Composite::Kind::kDecomposable;
  }

  Expression choice() {
    Expression value = binary(0);
    if (!accept("if")) return value;
    Expression condition = binary(0);
    expect("else");
    return {.kind = Expression::Kind::kChoice, .parts = {std::move(condition), std::move(value), choice()}};
  }
  Expression binary(size_t level) {
    if (level == levels().size()) return unary();
    constexpr size_t kComparisons = 2;  // `not` binds looser
    if (level == kComparisons && accept("not")) return operation("not", {binary(level)});
    Expression value = binary(level + 1);
    while (std::ranges::find(levels()[level], tokens_[0].text) != levels()[level].end() && is_operator()) {
      const std::string_view name = take(tokens_[0].kind);
      const bool is_negated = name == "is" && accept("not");
      value = operation(name, {std::move(value), binary(level + 1)});
      if (is_negated) value = operation("not", {std::move(value)});
    }
    return value;
  }
  Expression unary() {
    if (accept("-")) return operation("-", {unary()});
    Expression value = item();
    return accept("**") ? operation("**", {std::move(value), unary()}) : value;
  }
  Expression item() {
    Expression value = primary();
    while (accept("[")) {
      const Expression none = literal({None{}});
      Expression first = tokens_[0].text == ":" ? none : choice();
      if (!accept(":")) {
        value = {.kind = Expression::Kind::kItem, .parts = {std::move(value), std::move(first)}};
      } else {
        Expression last = tokens_[0].text == "]" ? none : choice();
        value = {.kind = Expression::Kind::kSlice,
                 .parts = {std::move(value), std::move(first), std::move(last)}};
      }
      expect("]");
    }
    return value;
  }
  Expression primary() {
    if (accept("(")) {
      Expression value = choice();
      expect(")");
      return value;
    }
    if (accept("[")) return list();
    if (tokens_[0].kind == Token::Kind::kText) return literal({std::string(take(Token::Kind::kText))});
    if (tokens_[0].kind == Token::Kind::kNumber) return number(take(Token::Kind::kNumber));
    return named(take(Token::Kind::kName));
  }
  Expression list() {
    Expression values{.kind = Expression::Kind::kList};
    while (!accept("]")) {
      values.parts.push_back(choice());
      if (accept("for")) {
        values.kind = Expression::Kind::kEach;
        values.text = take(Token::Kind::kName);
        expect("in");
        values.parts.push_back(binary(0));
        if (accept("if")) values.parts.push_back(binary(0));
      }
      if (accept(",")) continue;
      expect("]");
      break;
    }
    return values;
  }
  static Expression number(std::string_view text) {
    int64_t integer = 0;
    double real = 0;
    const char* end = text.data() + text.size();
    if (std::from_chars(text.data(), end, integer).ptr == end) return literal({integer});
    invariant(std::from_chars(text.data(), end, real).ptr == end, "composites.def has a malformed number");
    return literal({real});
  }
  Expression named(std::string_view name) {
    if (name == "None") return literal({None{}});
    if (name == "True" || name == "False") return literal({name == "True"});
    if (name == "math.inf") return literal({HUGE_VAL});
    if (name == "math.pi") return literal({std::numbers::pi});
    if (!accept("(")) return {.kind = Expression::Kind::kName, .text = std::string(name)};
    Expression call{.kind = Expression::Kind::kCall, .text = std::string(name)};
    while (!accept(")")) {
      const bool is_named = tokens_[1].text == "=";
      call.keywords.emplace_back(is_named ? take(Token::Kind::kName) : std::string_view());
      if (is_named) expect("=");
      call.parts.push_back(choice());
      accept(",");
    }
    return call;
  }

  bool is_operator() const {
    return tokens_[0].kind == Token::Kind::kSymbol || tokens_[0].kind == Token::Kind::kName;
  }
  bool accept(std::string_view text) {
    if (!is_operator() || tokens_[0].text != text) return false;
    tokens_ = tokens_.subspan(1);
    return true;
  }
  // A word that precedes a name.
  bool accept_word(std::string_view text) { return tokens_[1].kind == Token::Kind::kName && accept(text); }
  void accept_line_end() {
    if (tokens_[0].kind == Token::Kind::kLineEnd) take(Token::Kind::kLineEnd);
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail(text);
  }
  std::string_view take(Token::Kind kind) {
    if (tokens_[0].kind != kind) fail("another word");
    const std::string_view text = tokens_[0].text;
    tokens_ = tokens_.subspan(1);
    return text;
  }
  [[noreturn]] void fail(std::string_view expected) const {
    throw InternalError(
        fmt::format("composites.def has \"{}\" in place of \"{}\"", tokens_[0].text, expected));
  }

  std::span<const Token> tokens_;
};

constexpr std::string_view kOfCore[] = {
#include "importers/aten/composites/core/arithmetic.def"
    ,
#include "importers/aten/composites/core/elements.def"
    ,
#include "importers/aten/composites/core/fourier.def"
    ,
#include "importers/aten/composites/core/matrices.def"
    ,
#include "importers/aten/composites/core/normalization.def"
    ,
#include "importers/aten/composites/core/products.def"
    ,
#include "importers/aten/composites/core/quantization.def"
    ,
#include "importers/aten/composites/core/random.def"
    ,
#include "importers/aten/composites/core/recurrent.def"
    ,
#include "importers/aten/composites/core/reductions.def"
    ,
#include "importers/aten/composites/core/special_functions.def"
    ,
#include "importers/aten/composites/core/windows.def"
    ,
};
constexpr std::string_view kByHand =
#include "importers/aten/composites/composites.def"
    ;
constexpr std::string_view kKept =
#include "importers/aten/composites/kept.def"
    ;
constexpr std::string_view kGenerated =
#include "importers/aten/composites/generated.def"
    ;

std::vector<Composite> all_tables() {
  std::vector<Composite> all;
  const auto add = [&](std::string_view table) {
    std::ranges::move(parse_composites(table), std::back_inserter(all));
  };
  std::ranges::for_each(kOfCore, add);
  add(kByHand);
  add(kKept);
  add(kGenerated);
  return all;
}

}  // namespace

std::vector<Composite> parse_composites(std::string_view text) {
  std::vector<Composite> composites;
  for (const std::vector<Token>& tokens : rows_of_tokens(text))
    composites.push_back(CompositeParser(tokens).row());
  return composites;
}

const std::vector<Composite>& all_composites() {
  static const std::vector<Composite> kAll = all_tables();
  return kAll;
}

}  // namespace ingot::core::aten
