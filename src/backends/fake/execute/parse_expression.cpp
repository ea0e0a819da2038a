// SPDX-License-Identifier: Apache-2.0
#include "backends/fake/execute/parse_expression.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/core.h>

#include "loops/functions.h"
#include "loops/operator_names.h"
#include "loops/rarely.h"

namespace ingot::core::loops {
namespace {

constexpr int kMostNested = 1000;

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && stop == text.data() + text.size();
  return is_number ? std::optional(value) : std::nullopt;
}

// "1.5", "inf:f64", "-3", "7:u8", "true".
Expr constant_of(std::string_view text) {
  if (text == "true" || text == "false") return integer_constant(DType::kBool, text == "true");
  const size_t colon = text.find(':');
  const bool is_typed = colon != std::string_view::npos;
  const std::string_view digits = text.substr(0, colon);
  const bool is_integer_text = digits.find_first_not_of("-0123456789") == std::string_view::npos;
  const auto dtype = is_typed ? parse_dtype(text.substr(colon + 1))
                              : std::optional(is_integer_text ? DType::kI64 : DType::kF32);
  if (!dtype) return nullptr;
  if (*dtype == DType::kF32) {
    const auto value = number_of<float>(digits);
    return value ? constant(DType::kF32, *value) : nullptr;
  }
  if (*dtype == DType::kF64) {
    const auto value = number_of<double>(digits);
    return value ? constant(DType::kF64, *value) : nullptr;
  }
  const auto value = number_of<int64_t>(digits);
  return value && is_integer(*dtype) ? integer_constant(*dtype, *value) : nullptr;
}

template <size_t Count>
std::optional<size_t> position_of(const std::string_view (&names)[Count], std::string_view name) {
  const auto found = std::ranges::find(names, name);
  return found == std::end(names) ? std::nullopt : std::optional(static_cast<size_t>(found - names));
}

const Function* find_function(std::string_view name) {
  const auto functions = all_functions();
  const auto found = std::ranges::find(functions, name, &Function::name);
  return found == functions.end() ? nullptr : *found;
}

class ExpressionParser {
 public:
  ExpressionParser(Scanner& scanner, const Kernel& kernel, const TextNames& names)
      : scanner_(scanner), kernel_(kernel), names_(names) {}

  Expr parse() {
    if (++depth_ > kMostNested) scanner_.fail("the expression is nested too deeply");
    const size_t start = scanner_.next_position();
    Expr result;
    try {
      result = parse_here(start);
    } catch (const InternalError& error) {  // of the functions that build expressions
      scanner_.fail(start, broken_rule(error));
    }
    --depth_;
    return result;
  }

 private:
  Expr parse_here(size_t start) {
    if (scanner_.accept("%")) return shared(start);
    if (scanner_.accept("(")) return infix();
    if (scanner_.accept("-(")) return unary(Unary::kNegate, last_operand());
    const std::string word(scanner_.word());
    if (scanner_.next_is("(")) return call(start, word);
    if (scanner_.next_is("[")) return element(start, word);
    if (const auto stage = names_.stages.find(word); stage != names_.stages.end())
      return local_of(stage->second, {});
    scanner_.move_to(start);
    const std::string_view text = scanner_.raw_until(" ,\n");
    if (Expr value = constant_of(text)) return value;
    scanner_.fail(start, fmt::format("'{}' is neither a constant nor the name of a row or scalar", text));
  }

  Expr shared(size_t start) {
    const std::string name = fmt::format("%{}", scanner_.word());
    const auto found = names_.shared.find(name);
    if (found == names_.shared.end()) scanner_.fail(start, fmt::format("'{}' is not defined before", name));
    return found->second;
  }

  Expr infix() {
    Expr a = parse();
    const Binary op = infix_operator();
    Expr b = last_operand();
    return binary(op, std::move(a), std::move(b));
  }

  // The longest that fits: "<<" and "<=" begin like "<".
  Binary infix_operator() {
    std::optional<size_t> best;
    for (size_t i = 0; i < std::size(kBinaryNames); ++i) {
      const std::string_view name = kBinaryNames[i];
      if (is_function_name(name) || !scanner_.next_is(name)) continue;
      if (!best || name.size() > kBinaryNames[*best].size()) best = i;
    }
    if (!best) scanner_.fail("expected an operator such as '+'");
    scanner_.expect(kBinaryNames[*best]);
    return static_cast<Binary>(*best);
  }

  Expr operand() {
    Expr result = parse();
    scanner_.expect(",");
    return result;
  }
  Expr last_operand() {
    Expr result = parse();
    scanner_.expect(")");
    return result;
  }

  Expr element(size_t start, const std::string& name) {
    std::vector<Dim> index = parse_index(scanner_);
    if (const auto buffer = names_.buffers.find(name); buffer != names_.buffers.end()) {
      const auto position = static_cast<size_t>(buffer->second);
      return load(buffer->second, kernel_.buffers[position].type.dtype, std::move(index));
    }
    const auto stage = names_.stages.find(name);
    if (stage == names_.stages.end())
      scanner_.fail(start, fmt::format("there is no buffer or earlier row '{}'", name));
    return local_of(stage->second, std::move(index));
  }

  Expr local_of(int stage, std::vector<Dim> index) const {
    const DType dtype = kernel_.stages[static_cast<size_t>(stage)].value->dtype;
    return local(stage, dtype, std::move(index));
  }

  Expr call(size_t start, const std::string& name) {
    scanner_.expect("(");
    if (name == "index") {
      Dim dim = parse_dim_until(scanner_, "");
      scanner_.expect(")");
      return index_value(std::move(dim));
    }
    if (name == "select" || name == "rarely") {
      Expr condition = operand(), then = operand(), otherwise = last_operand();
      return (name == "select" ? select : rarely)(std::move(condition), std::move(then),
                                                  std::move(otherwise));
    }
    if (name == "fma") {
      Expr a = operand(), b = operand(), c = last_operand();
      return fma(std::move(a), std::move(b), std::move(c));
    }
    if (const auto op = position_of(kBinaryNames, name)) {
      Expr a = operand(), b = last_operand();
      return binary(static_cast<Binary>(*op), std::move(a), std::move(b));
    }
    if (const auto op = position_of(kUnaryNames, name)) return unary(static_cast<Unary>(*op), last_operand());
    if (const Function* function = find_function(name)) return loops::call(*function, last_operand());
    return conversion(start, name);
  }

  Expr conversion(size_t start, std::string_view name) {
    constexpr std::string_view kBitcast = "bitcast_";
    const bool keeps_bits = name.starts_with(kBitcast);
    const auto dtype = parse_dtype(keeps_bits ? name.substr(kBitcast.size()) : name);
    if (!dtype || is_complex(*dtype) || arithmetic_dtype(*dtype) != *dtype)
      scanner_.fail(start, fmt::format("there is no function '{}'", name));
    return keeps_bits ? bitcast(*dtype, last_operand()) : convert(*dtype, last_operand());
  }

  Scanner& scanner_;
  const Kernel& kernel_;
  const TextNames& names_;
  int depth_ = 0;
};

}  // namespace

std::string broken_rule(const InternalError& error) {
  const std::string& message = error.details().message;
  return message.substr(0, std::min(message.find('\n'), message.rfind(" (")));
}

std::string parse_name(Scanner& scanner) {
  const size_t start = scanner.next_position();
  const std::string mark = scanner.accept("$") ? "$" : "";
  const std::string_view word = scanner.word();
  const bool is_name = !word.empty() && word[0] != '.' && (word[0] < '0' || word[0] > '9');
  if (!is_name) scanner.fail(start, "expected a name");
  return mark + std::string(word);
}

Dim parse_dim_until(Scanner& scanner, std::string_view stops) {
  const size_t start = scanner.next_position();
  const std::string_view text = scanner.raw_until(stops);
  return scanner.located(start, [&] { return parse_kernel_dim(text); });
}

std::vector<Dim> parse_index(Scanner& scanner) {
  std::vector<Dim> index;
  scanner.expect("[");
  if (scanner.accept("]")) return index;
  do {
    index.push_back(parse_dim_until(scanner, ","));
  } while (scanner.accept(","));
  scanner.expect("]");
  return index;
}

Expr parse_expression(Scanner& scanner, const Kernel& kernel, const TextNames& names) {
  return ExpressionParser(scanner, kernel, names).parse();
}

}  // namespace ingot::core::loops
