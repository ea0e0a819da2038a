// SPDX-License-Identifier: Apache-2.0
// Printing and parsing of predicates.
#include <array>
#include <cctype>
#include <utility>

#include <fmt/core.h>

#include "support/error.h"
#include "types/predicate.h"

namespace ingot::core {
namespace {

using Kind = Predicate::Kind;

constexpr std::array<std::string_view, 4> kComparisons = {"==", "!=", "<", "<="};  // by Kind

bool is_joined(const Predicate& predicate) {
  return predicate.kind == Kind::kAnd || predicate.kind == Kind::kOr;
}

std::string print_part(const Predicate& part) {
  return is_joined(part) ? "[" + to_string(part) + "]" : to_string(part);
}

// predicate := part ["&" part | "|" part];  part := "[" predicate "]" | dim comparison dim
class PredicateParser {
 public:
  explicit PredicateParser(std::string_view text) : text_(text) {}

  Predicate parse() {
    Predicate result = predicate(1);
    if (!at_end()) fail("unexpected text after the condition");
    return result;
  }

 private:
  Predicate predicate(size_t depth) {
    if (depth > kMaxPredicateDepth) fail("it is nested too deeply");
    Predicate left = part(depth);
    if (accept("&")) return both(std::move(left), part(depth));
    if (accept("|")) return either(std::move(left), part(depth));
    return left;
  }

  Predicate part(size_t depth) {
    if (!accept("[")) return comparison();
    Predicate inner = predicate(depth + 1);
    if (!accept("]")) fail("expected ']'");
    return inner;
  }

  Predicate comparison() {
    const Dim left = dim();
    for (const int kind : {0, 1, 3, 2}) {  // "<=" before "<"
      if (accept(kComparisons[static_cast<size_t>(kind)]))
        return compare(static_cast<Kind>(kind), left, dim());
    }
    fail("expected a comparison");
  }

  Dim dim() {
    const std::string_view text = text_.substr(position_);
    const std::string_view size = text.substr(0, text.find_first_of("=!<&|[]"));
    position_ += size.size();
    return parse_dim(size);
  }

  void skip_spaces() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])) != 0)
      ++position_;
  }
  bool at_end() {
    skip_spaces();
    return position_ == text_.size();
  }
  bool accept(std::string_view token) {
    skip_spaces();
    if (!text_.substr(position_).starts_with(token)) return false;
    position_ += token.size();
    return true;
  }
  [[noreturn]] void fail(std::string_view cause) const {
    throw UserError("INGOT-U105", fmt::format("'{}' is not a condition on sizes: {} at column {}",
                                              text_.substr(0, 200), cause, position_ + 1));
  }

  std::string_view text_;
  size_t position_ = 0;
};

bool reads_alone(const Dim& dim) {
  const Dim::Kind kind = dim.kind();
  return kind == Dim::Kind::kSymbol || kind == Dim::Kind::kMaximum || kind == Dim::Kind::kMinimum ||
         (kind == Dim::Kind::kConstant && *dim.constant() >= 0);
}

std::string print_operand(const Dim& dim, const SymbolSpelling& name) {
  return reads_alone(dim) ? to_python(dim, name) : "(" + to_python(dim, name) + ")";
}

std::string print_joined(std::span<const Dim> operands, std::string_view separator,
                         const SymbolSpelling& name) {
  std::string text;
  for (const Dim& operand : operands)
    text += (text.empty() ? "" : std::string(separator)) + print_operand(operand, name);
  return text;
}

std::string print_sum(std::span<const Dim> terms, const SymbolSpelling& name) {
  std::string text = to_python(terms[0], name);
  for (const Dim& term : terms.subspan(1)) {
    const std::string next = to_python(term, name);
    text += next[0] == '-' ? " - " + next.substr(1) : " + " + next;
  }
  return text;
}

std::string print_call(std::string_view function, std::span<const Dim> operands, const SymbolSpelling& name) {
  std::string text;
  for (const Dim& operand : operands) text += (text.empty() ? "" : ", ") + to_python(operand, name);
  return fmt::format("{}({})", function, text);
}

}  // namespace

std::string to_string(const Predicate& predicate) {
  if (is_joined(predicate)) {
    return fmt::format("{} {} {}", print_part(predicate.parts[0]), predicate.kind == Kind::kAnd ? "&" : "|",
                       print_part(predicate.parts[1]));
  }
  return fmt::format("{} {} {}", predicate.left.to_string(),
                     kComparisons[static_cast<size_t>(predicate.kind)], predicate.right.to_string());
}

Predicate parse_predicate(std::string_view text) { return PredicateParser(text).parse(); }

std::string to_python(const Dim& dim, const SymbolSpelling& name) {
  const auto operands = dim.operands();
  switch (dim.kind()) {
    case Dim::Kind::kConstant:
      return dim.to_string();
    case Dim::Kind::kSymbol:
      return name(dim.symbol_name());
    case Dim::Kind::kAdd:
      return print_sum(operands, name);
    case Dim::Kind::kMultiply:
      if (operands[0] == Dim(-1)) return "-" + print_joined(operands.subspan(1), "*", name);
      if (operands[0].constant().value_or(0) < 0)
        return to_python(operands[0], name) + "*" + print_joined(operands.subspan(1), "*", name);
      return print_joined(operands, "*", name);
    case Dim::Kind::kFloorDivide:
      return print_joined(operands, " // ", name);
    case Dim::Kind::kModulo:
      return print_joined(operands, " % ", name);
    case Dim::Kind::kMaximum:
      return print_call("max", operands, name);
    case Dim::Kind::kMinimum:
      return print_call("min", operands, name);
  }
  throw InternalError("unknown kind of dim");
}

std::string to_python(const Predicate& predicate, const SymbolSpelling& name) {
  const auto part = [&](const Predicate& inner) {
    return is_joined(inner) ? "(" + to_python(inner, name) + ")" : to_python(inner, name);
  };
  if (is_joined(predicate)) {
    return fmt::format("{} {} {}", part(predicate.parts[0]), predicate.kind == Kind::kAnd ? "and" : "or",
                       part(predicate.parts[1]));
  }
  // "x > 20" reads better than "20 < x".
  const bool swapped = predicate.left.is_constant() && !predicate.right.is_constant();
  std::string_view sign = kComparisons[static_cast<size_t>(predicate.kind)];
  if (swapped && predicate.kind == Kind::kLess) sign = ">";
  if (swapped && predicate.kind == Kind::kAtMost) sign = ">=";
  return fmt::format("{} {} {}", to_python(swapped ? predicate.right : predicate.left, name), sign,
                     to_python(swapped ? predicate.left : predicate.right, name));
}

}  // namespace ingot::core
