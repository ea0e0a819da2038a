// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/program/guard_parser.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "importers/aten/program/guard_paths.h"
#include "support/error.h"

namespace ingot::core::aten {
namespace {

constexpr int kMaximumDepth = 48;
constexpr size_t kMaximumLength = 16384;

bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

// A quantity or a condition: either may be in parentheses.
struct Item {
  std::optional<Fraction> number;
  std::optional<Predicate> condition;
};

// a/b and c/d, denominators positive: a*d and c*b.
Predicate comparison_of(Predicate::Kind kind, const Fraction& a, const Fraction& b) {
  if (a.denominator == b.denominator) return compare(kind, a.numerator, b.numerator);
  return compare(kind, a.numerator * b.denominator, b.numerator * a.denominator);
}

class Parser {
 public:
  Parser(std::string_view text, const Graph& graph) : text_(text), rest_(text), graph_(graph) {}

  Predicate parse() {
    if (text_.size() > kMaximumLength) give_up("it is too long");
    Predicate result = condition(disjunction());
    skip_spaces();
    if (!rest_.empty()) give_up(fmt::format("'{}' is not supported", rest_.substr(0, 40)));
    return result;
  }

 private:
  [[noreturn]] void give_up(std::string_view reason) const {
    throw UnsupportedError("INGOT-N524",
                           fmt::format("the program was traced for {}, which an engine cannot check: {}",
                                       text_.substr(0, 300), reason));
  }
  Predicate condition(Item item) const {
    if (!item.condition) give_up("a number is used as a condition");
    return std::move(*item.condition);
  }
  Fraction number(Item item) const {
    if (!item.number) give_up("a condition is used as a number");
    return std::move(*item.number);
  }
  Fraction known(const Quantity& quantity) const {
    if (!quantity) give_up("a quantity in it is not a fraction of sizes");
    return *quantity;
  }
  Dim integer(const Fraction& value) const {
    const std::optional<Dim> dim = whole(value);
    if (!dim) give_up("a quantity in it is not an integer");
    return *dim;
  }

  Item disjunction() {
    if (++depth_ > kMaximumDepth) give_up("it is nested too deeply");
    Item left = conjunction();
    while (accept_word("or")) left = {{}, either(condition(std::move(left)), condition(conjunction()))};
    --depth_;
    return left;
  }
  Item conjunction() {
    Item left = inversion();
    while (accept_word("and")) left = {{}, both(condition(std::move(left)), condition(inversion()))};
    return left;
  }
  Item inversion() {
    if (!accept_word("not")) return comparison();
    if (++depth_ > kMaximumDepth) give_up("it is nested too deeply");
    Item result{{}, negation(condition(inversion()))};
    --depth_;
    return result;
  }

  // A chain: 2 <= x <= 16.
  Item comparison() {
    Item left = sum();
    std::optional<Predicate> result;
    while (const auto sign = comparator()) {
      Item right = sum();
      const Fraction a = number(std::move(left)), b = number(right);
      Predicate link = sign->second ? comparison_of(sign->first, b, a) : comparison_of(sign->first, a, b);
      result = result ? both(std::move(*result), std::move(link)) : std::move(link);
      left = std::move(right);
    }
    return result ? Item{{}, std::move(result)} : left;
  }
  // ... and whether the sides are swapped.
  std::optional<std::pair<Predicate::Kind, bool>> comparator() {
    using Kind = Predicate::Kind;
    if (accept("==")) return {{Kind::kEqual, false}};
    if (accept("!=")) return {{Kind::kNotEqual, false}};
    if (accept("<=")) return {{Kind::kAtMost, false}};
    if (accept(">=")) return {{Kind::kAtMost, true}};
    if (accept("<")) return {{Kind::kLess, false}};
    if (accept(">")) return {{Kind::kLess, true}};
    return std::nullopt;
  }

  Item sum() {
    Item left = term();
    while (true) {
      const bool plus = accept("+");
      if (!plus && !accept("-")) return left;
      Fraction right = number(term());
      if (!plus) right.numerator = Dim(0) - right.numerator;
      left = {known(add(number(std::move(left)), right)), {}};
    }
  }

  Item term() {
    Item left = factor();
    while (true) {
      if (accept("//")) {
        const Fraction a = number(std::move(left)), b = number(factor());
        left = {{Fraction{floor_divide(integer(a), divisor(b))}}, {}};
      } else if (accept("%")) {
        const Fraction a = number(std::move(left)), b = number(factor());
        left = {{Fraction{modulo(integer(a), divisor(b))}}, {}};
      } else if (accept("/")) {
        const Fraction a = number(std::move(left)), b = number(factor());
        left = {known(divide(a, b, graph_.symbols)), {}};
      } else if (accept("*")) {
        const Fraction a = number(std::move(left)), b = number(factor());
        left = {known(multiply(a, b)), {}};
      } else {
        return left;
      }
    }
  }
  Dim divisor(const Fraction& value) const {
    const Dim dim = integer(value);
    if (dim == Dim(0)) give_up("it divides by zero");
    return dim;
  }

  Item factor() {
    if (++depth_ > kMaximumDepth) give_up("it is nested too deeply");
    Item result;
    if (accept("-")) {
      Fraction value = number(factor());
      value.numerator = Dim(0) - value.numerator;
      result = {std::move(value), {}};
    } else {
      result = primary();
      if (accept("**")) {
        const auto exponent = integer(number(factor())).constant();
        result = {known(exponent ? power(number(std::move(result)), *exponent) : std::nullopt), {}};
      }
    }
    --depth_;
    return result;
  }

  Item primary() {
    skip_spaces();
    if (accept("(")) {
      Item inside = disjunction();
      if (!accept(")")) give_up("expected ')'");
      return inside;
    }
    if (rest_.starts_with("L[")) return {{Fraction{size_of_input()}}, {}};
    if (!rest_.empty() && (std::isdigit(static_cast<unsigned char>(rest_.front())) != 0)) return literal();
    const std::string_view name = word();
    if (name == "True" || name == "False") return {{}, name == "True" ? always() : negation(always())};
    if (!name.empty() && accept("(")) return {call(name), {}};
    if (!graph_.symbols.contains(name)) give_up(fmt::format("'{}' is unknown", name.substr(0, 40)));
    return {{Fraction{Dim::symbol(std::string(name))}}, {}};
  }

  Item literal() {
    size_t length = 0;
    const auto goes_on = [&](char c) {
      const bool signs_exponent = (c == '-' || c == '+') && length > 0 && rest_[length - 1] == 'e';
      return is_name_part(c) || signs_exponent;
    };
    while (length < rest_.size() && goes_on(rest_[length])) ++length;
    const std::string_view text = rest_.substr(0, length);
    rest_.remove_prefix(length);
    int64_t whole_value = 0;
    const char* end = text.data() + text.size();
    if (const auto read = std::from_chars(text.data(), end, whole_value);
        read.ec == std::errc() && read.ptr == end)
      return {{Fraction{whole_value}}, {}};
    double value = 0;
    const auto read = std::from_chars(text.data(), end, value);
    if (read.ec != std::errc() || read.ptr != end)
      give_up(fmt::format("'{}' is not a number", text.substr(0, 40)));
    return {known(fraction_of(value)), {}};
  }

  Fraction call(std::string_view name) {
    std::vector<Fraction> values;
    do values.push_back(number(disjunction()));
    while (accept(","));
    if (!accept(")")) give_up("expected ')'");
    const Fraction& first = values[0];
    if (name == "torch.sym_float" || name == "float") return first;
    if (name == "math.floor") return {round_down(first)};
    if (name == "math.ceil") return {round_up(first)};
    if (name == "math.trunc" || name == "torch.sym_int" || name == "int") {
      const std::optional<Dim> value = truncate(first, graph_.symbols);
      if (!value) give_up("it truncates a quantity of unknown sign");
      return {*value};
    }
    const bool is_maximum = name == "max" || name == "torch.sym_max";
    if (!is_maximum && name != "min" && name != "torch.sym_min")
      give_up(fmt::format("'{}' is unknown", name));
    Dim result = integer(first);
    for (const Fraction& value : values)
      result = is_maximum ? maximum(result, integer(value)) : minimum(result, integer(value));
    return {result};
  }

  Dim size_of_input() {
    const GuardPath path = read_guard_path(rest_);
    const std::optional<Dim> size = find_size(graph_, path);
    if (!size) give_up(fmt::format("'{}' is not the size of an input", path.text.substr(0, 80)));
    return *size;
  }

  void skip_spaces() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }
  bool accept(std::string_view token) {
    skip_spaces();
    if (!rest_.starts_with(token)) return false;
    // "*" and "/" are prefixes of other operators.
    if (token.size() == 1 && (token == "*" || token == "/") && rest_.substr(1).starts_with(token))
      return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  bool accept_word(std::string_view expected) {
    skip_spaces();
    if (!rest_.starts_with(expected)) return false;
    if (rest_.size() > expected.size() && is_name_part(rest_[expected.size()])) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  std::string_view word() {
    const auto end = std::ranges::find_if_not(rest_, is_name_part);
    const std::string_view taken = rest_.substr(0, static_cast<size_t>(end - rest_.begin()));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view text_, rest_;
  const Graph& graph_;
  int depth_ = 0;
};

}  // namespace

Predicate parse_guard(std::string_view text, const Graph& graph) {
  try {
    return Parser(text, graph).parse();
  } catch (const UserError& error) {  // sizes beyond 64 bits, a division by zero
    throw UnsupportedError("INGOT-N524",
                           fmt::format("the program was traced for {}, which an engine cannot check: {}",
                                       text.substr(0, 300), error.details().message));
  }
}

}  // namespace ingot::core::aten
