// SPDX-License-Identifier: Apache-2.0
// Printing and parsing of dims.
#include <cctype>
#include <charconv>

#include <fmt/core.h>

#include "support/error.h"
#include "types/dim_node.h"
#include "types/symbol_name.h"

namespace ingot::core {
namespace {

constexpr int kMaximumDepth = 64;

std::string print_function(std::string_view function, std::span<const Dim> operands) {
  std::string text(function);
  for (size_t i = 0; i < operands.size(); ++i) text += (i == 0 ? "(" : ", ") + operands[i].to_string();
  return text + ")";
}

std::string print_product(std::span<const Dim> factors) {
  const bool negated = factors[0] == Dim(-1);
  std::string text = negated ? "-" : factors[0].to_string();
  for (size_t i = 1; i < factors.size(); ++i) text += (negated && i == 1 ? "" : "*") + factors[i].to_string();
  return text;
}

std::string print_sum(std::span<const Dim> terms) {
  std::string text = terms[0].to_string();
  for (const Dim& term : terms.subspan(1)) {
    const std::string next = term.to_string();
    text += next[0] == '-' ? " - " + next.substr(1) : " + " + next;
  }
  return text;
}

// sum := ["-"] product {("+" | "-") product};  product := factor {"*" factor}
// factor := number | symbol | function "(" sum {"," sum} ")" | "(" sum ")"
class DimParser {
 public:
  DimParser(std::string_view text, bool has_variables) : text_(text), has_variables_(has_variables) {}

  Dim parse() {
    Dim result = sum();
    skip_spaces();
    if (position_ != text_.size()) fail("unexpected text after the size");
    return result;
  }

 private:
  Dim sum() {
    if (++depth_ > kMaximumDepth) fail("it is nested too deeply");
    Dim result = product(accept('-'));
    while (true) {
      if (accept('+')) {
        result = result + product(false);
      } else if (accept('-')) {
        result = result + product(true);
      } else {
        --depth_;
        return result;
      }
    }
  }

  Dim product(bool negative) {
    skip_spaces();
    // A leading number includes the sign, since the smallest int64 has no positive counterpart.
    const bool number_first = position_ < text_.size() && std::isdigit(current()) != 0;
    Dim result = number_first ? number(negative) : factor();
    while (accept('*')) result = result * factor();
    return negative && !number_first ? Dim(0) - result : result;
  }

  Dim factor() {
    skip_spaces();
    if (position_ == text_.size()) fail("it ends too early");
    if (std::isdigit(current()) != 0) return number(false);
    if (accept('(')) {
      Dim result = sum();
      expect(')');
      return result;
    }
    const std::string_view name = word();
    if (name.empty()) fail("expected a number, a name or '('");
    return accept('(') ? call(name) : Dim::symbol(std::string(name));
  }

  Dim number(bool negative) {
    const char* end = text_.data() + text_.size();
    uint64_t magnitude = 0;
    const auto [stop, error] = std::from_chars(text_.data() + position_, end, magnitude);
    const uint64_t limit = static_cast<uint64_t>(INT64_MAX) + (negative ? 1 : 0);
    if (error != std::errc() || magnitude > limit) fail("the number does not fit into 64 bits");
    position_ = static_cast<size_t>(stop - text_.data());
    return static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  }

  Dim call(std::string_view function) {
    std::vector<Dim> operands = {sum()};
    while (accept(',')) operands.push_back(sum());
    expect(')');
    if (function == "floordiv" && operands.size() == 2) return floor_divide(operands[0], operands[1]);
    if (function == "mod" && operands.size() == 2) return modulo(operands[0], operands[1]);
    const bool is_maximum = function == "max";
    if (!is_maximum && function != "min") fail("expected floordiv(a, b), mod(a, b), max(...) or min(...)");
    Dim result = operands[0];
    for (const Dim& operand : operands)
      result = is_maximum ? maximum(result, operand) : minimum(result, operand);
    return result;
  }

  std::string_view word() {
    const size_t start = position_;
    if (has_variables_ && text_.substr(start).starts_with(kVariableMark)) ++position_;
    while (position_ < text_.size() &&
           (std::isalnum(current()) != 0 || current() == '_' || current() == '.')) {
      ++position_;
    }
    return text_.substr(start, position_ - start);
  }

  unsigned char current() const { return static_cast<unsigned char>(text_[position_]); }

  void skip_spaces() {
    while (position_ < text_.size() && std::isspace(current()) != 0) ++position_;
  }

  bool accept(char expected) {
    skip_spaces();
    if (position_ == text_.size() || text_[position_] != expected) return false;
    ++position_;
    return true;
  }

  void expect(char expected) {
    if (!accept(expected)) fail(fmt::format("expected '{}'", expected));
  }

  [[noreturn]] void fail(std::string_view cause) const {
    throw UserError("INGOT-U105",
                    fmt::format("'{}' is not a size: {} at column {}", text_, cause, position_ + 1));
  }

  std::string_view text_;
  const bool has_variables_;
  size_t position_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string Dim::to_string() const {
  switch (kind()) {
    case Kind::kConstant:
      return std::to_string(value_);
    case Kind::kSymbol:
      return symbol_name();
    case Kind::kAdd:
      return print_sum(operands());
    case Kind::kMultiply:
      return print_product(operands());
    case Kind::kFloorDivide:
      return print_function("floordiv", operands());
    case Kind::kModulo:
      return print_function("mod", operands());
    case Kind::kMaximum:
      return print_function("max", operands());
    case Kind::kMinimum:
      return print_function("min", operands());
  }
  throw InternalError("unknown kind of dim");
}

Dim parse_dim(std::string_view text) { return DimParser(text, false).parse(); }
Dim parse_kernel_dim(std::string_view text) { return DimParser(text, true).parse(); }

}  // namespace ingot::core
