// SPDX-License-Identifier: Apache-2.0
#include "importers/pt2/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "support/error.h"

namespace ingot::core::pt2 {
namespace {

constexpr size_t kMaximumLength = 16384;
constexpr int kDeepestExpression = 64;

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

template <typename T>
bool parse_number(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end;
}

template <size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, name) != names.end();
}

// Functions from a float to an integer: a node computes the result if it is not expressible.
constexpr std::array<std::string_view, 6> kRounding = {"TruncToInt", "FloorToInt", "CeilToInt",
                                                       "RoundToInt", "floor",      "ceiling"};
constexpr std::array<std::string_view, 21> kFunctions = {
    "Add",          "Mul",       "Pow",      "Max",          "Min",          "FloorDiv",   "CleanDiv",
    "Mod",          "PythonMod", "CeilDiv",  "LShift",       "RShift",       "IntTrueDiv", "ModularIndexing",
    "FloatTrueDiv", "ToFloat",   "Identity", "PowByNatural", "TruncToFloat", "Integer",    "Rational"};

std::optional<int64_t> constant(const Fraction& value) {
  const std::optional<Dim> dim = whole(value);
  return dim ? dim->constant() : std::nullopt;
}

Quantity wrap(const std::optional<Dim>& dim) { return dim ? Quantity(Fraction{*dim}) : std::nullopt; }

}  // namespace

void ExpressionParser::fail(std::string_view expected) const {
  throw UserError("INGOT-U508",
                  fmt::format("the symbolic size '{}' is malformed: expected {} at character {}",
                              text_.substr(0, 200), expected, text_.size() - rest_.size()));
}

void ExpressionParser::skip_spaces() {
  while (rest_.starts_with(' ')) rest_.remove_prefix(1);
}

bool ExpressionParser::accept(std::string_view token) {
  skip_spaces();
  if (!rest_.starts_with(token)) return false;
  rest_.remove_prefix(token.size());
  return true;
}

std::string_view ExpressionParser::word() {
  const auto end = std::ranges::find_if_not(rest_, is_name_part);
  const std::string_view taken = rest_.substr(0, static_cast<size_t>(end - rest_.begin()));
  rest_.remove_prefix(taken.size());
  return taken;
}

std::string_view ExpressionParser::quoted() {
  skip_spaces();
  const char quote = rest_.empty() ? '\0' : rest_.front();
  const size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : std::string_view::npos;
  if (end == std::string_view::npos) fail("a quoted string");
  const std::string_view inside = rest_.substr(1, end - 1);
  rest_.remove_prefix(end + 1);
  return inside;
}

// ", positive=True, integer=True)": sympy's assumptions add nothing to the ranges.
void ExpressionParser::skip_keywords() {
  while (accept(",")) {
    skip_spaces();
    word();
    if (!accept("=")) fail("'='");
    skip_spaces();
    word();
  }
  if (!accept(")")) fail("')'");
}

// After the opening parenthesis of an unknown function: skips to its closing one.
void ExpressionParser::skip_call() {
  for (int open = 1; open > 0;) {
    skip_spaces();
    if (rest_.empty()) fail("')'");
    const char c = rest_.front();
    if (c == '\'' || c == '"') {
      quoted();
      continue;
    }
    open += c == '(' ? 1 : c == ')' ? -1 : 0;
    rest_.remove_prefix(1);
  }
}

Dim ExpressionParser::parse() {
  if (text_.size() > kMaximumLength)
    throw UserError("INGOT-U508", fmt::format("a symbolic size has more than {} characters", kMaximumLength));
  const Quantity value = sum();
  skip_spaces();
  if (!rest_.empty()) fail("the end");
  const std::optional<Dim> dim = value ? whole(*value) : std::nullopt;
  return dim ? *dim : dims_.of(text_);
}

Quantity ExpressionParser::sum() {
  if (++depth_ > kDeepestExpression) fail("less nesting");
  Quantity left = term();
  for (;;) {
    const bool is_plus = accept("+");
    if (!is_plus && !accept("-")) break;
    Quantity right = term();
    if (right && !is_plus) right->numerator = Dim(0) - right->numerator;
    left = left && right ? add(*left, *right) : std::nullopt;
  }
  --depth_;
  return left;
}

Quantity ExpressionParser::term() {
  Quantity left = factor();
  for (;;) {
    std::string_view name;
    for (const auto& [token, function] : {std::pair("*", "Mul"), std::pair("//", "FloorDiv"),
                                          std::pair("/", "IntTrueDiv"), std::pair("%", "PythonMod")}) {
      if (!accept(token)) continue;
      name = function;
      break;
    }
    if (name.empty()) return left;
    left = apply(name, {left, factor()});
  }
}

Quantity ExpressionParser::factor() {
  if (accept("-")) {
    if (++depth_ > kDeepestExpression) fail("less nesting");
    const Quantity value = factor();
    --depth_;
    return apply("Mul", {Fraction{-1}, value});
  }
  const Quantity base = primary();
  if (!accept("**")) return base;
  if (++depth_ > kDeepestExpression) fail("less nesting");
  const Quantity exponent = factor();
  --depth_;
  return apply("Pow", {base, exponent});
}

Quantity ExpressionParser::primary() {
  skip_spaces();
  const std::string_view begin = rest_;
  if (accept("(")) {
    const Quantity inside = sum();
    if (!accept(")")) fail("')'");
    return inside;
  }
  if (rest_.empty()) fail("a value");
  if (is_digit(rest_.front())) return number();
  if (!is_name_start(rest_.front())) fail("a value");
  const std::string_view name = word();
  return accept("(") ? call(name, begin) : symbol(name);
}

Quantity ExpressionParser::number() {
  const std::string_view token = word();
  int64_t integer = 0;
  if (parse_number(token, integer)) return Fraction{integer};
  if (std::ranges::all_of(token, is_digit)) fail("a 64-bit integer");
  double value = 0;
  if (!parse_number(token, value)) fail("a number");
  return fraction_of(value);
}

Quantity ExpressionParser::symbol(std::string_view name) {
  const auto is_allowed = [](char c) { return is_name_part(c) && c != '.'; };
  if (name.empty() || !is_name_start(name.front()) || !std::ranges::all_of(name, is_allowed))
    fail("a symbol");
  const bool is_size = name.front() == 's';  // "s0": a size of an input; "u0": computed by a node
  dims_.symbols().try_emplace(std::string(name), SymbolInfo{.range = {is_size ? 0 : INT64_MIN, INT64_MAX}});
  return Fraction{Dim::symbol(std::string(name))};
}

Quantity ExpressionParser::call(std::string_view name, std::string_view begin) {
  if (name == "Symbol" || name == "Float") return literal_call(name);
  const bool is_rounding = is_one_of(name, kRounding);
  Quantity result;
  if (is_rounding || is_one_of(name, kFunctions)) {
    result = apply(name, arguments());
  } else {
    skip_call();
  }
  if (result || !is_rounding) return result;
  return Fraction{dims_.of(begin.substr(0, begin.size() - rest_.size()))};
}

Quantity ExpressionParser::literal_call(std::string_view name) {
  const std::string_view text = quoted();
  skip_keywords();
  if (name == "Symbol") return symbol(text);
  double value = 0;
  if (!parse_number(text, value)) fail("a number");
  return fraction_of(value);
}

std::vector<Quantity> ExpressionParser::arguments() {
  std::vector<Quantity> result;
  if (accept(")")) return result;
  do result.push_back(sum());
  while (accept(","));
  if (!accept(")")) fail("')'");
  return result;
}

Quantity ExpressionParser::apply(std::string_view name, const std::vector<Quantity>& arguments) {
  if (arguments.empty()) fail("an argument");
  if (std::ranges::any_of(arguments, [](const Quantity& argument) { return !argument; })) return std::nullopt;
  const Fraction& first = *arguments[0];
  if (arguments.size() == 1) {
    if (name == "TruncToInt" || name == "TruncToFloat") return wrap(truncate(first, dims_.symbols()));
    if (name == "FloorToInt" || name == "floor") return Fraction{round_down(first)};
    if (name == "CeilToInt" || name == "ceiling") return Fraction{round_up(first)};
    if (name == "RoundToInt") return wrap(whole(first));
    return first;  // Integer, ToFloat, Identity, a sum of one
  }
  if (name == "ModularIndexing" && arguments.size() == 3) {
    const Quantity quotient = apply_two("FloorDiv", first, *arguments[1]);
    return quotient ? apply_two("Mod", *quotient, *arguments[2]) : std::nullopt;
  }
  Quantity result = first;
  for (size_t i = 1; i < arguments.size() && result; ++i) result = apply_two(name, *result, *arguments[i]);
  return result;
}

Quantity ExpressionParser::apply_two(std::string_view name, const Fraction& a, const Fraction& b) {
  if (name == "Add") return add(a, b);
  if (name == "Mul") return multiply(a, b);
  if (name == "IntTrueDiv" || name == "FloatTrueDiv" || name == "Rational")
    return divide(a, b, dims_.symbols());
  if (name == "Pow" || name == "PowByNatural") {
    const std::optional<int64_t> exponent = constant(b);
    if (exponent == -1) return divide({1}, a, dims_.symbols());
    return exponent ? power(a, *exponent) : std::nullopt;
  }
  const std::optional<Dim> left = whole(a), right = whole(b);
  return left && right ? divide_whole(name, *left, *right) : std::nullopt;
}

Quantity ExpressionParser::divide_whole(std::string_view name, const Dim& a, const Dim& b) {
  if (name == "Max") return Fraction{maximum(a, b)};
  if (name == "Min") return Fraction{minimum(a, b)};
  if (name == "LShift" || name == "RShift") {
    const std::optional<int64_t> bits = b.constant();
    if (!bits || *bits < 0 || *bits > 62) return std::nullopt;
    const Dim factor = int64_t{1} << *bits;
    return Fraction{name == "LShift" ? a * factor : floor_divide(a, factor)};
  }
  if (b == Dim(0)) fail("a nonzero divisor");
  if (name == "FloorDiv" || name == "CleanDiv") return Fraction{floor_divide(a, b)};
  if (name == "CeilDiv") return Fraction{ceil_divide(a, b)};
  if (name == "Mod" || name == "PythonMod") return Fraction{modulo(a, b)};
  return std::nullopt;
}

}  // namespace ingot::core::pt2
