// SPDX-License-Identifier: Apache-2.0
#include "types/size_check.h"

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core {
namespace {

std::string describe_values(const SizeCheck& check, const SymbolSpelling& name, const SymbolValues& values) {
  std::string text;
  for (const std::string& symbol : symbols_of(check.condition)) {
    const auto value = values.find(symbol);
    if (value == values.end()) continue;
    text += fmt::format("{}{} is {}", text.empty() ? "" : ", ", name(symbol), value->second);
  }
  return text;
}

std::string describe(const SizeCheck& check, const SymbolSpelling& name) {
  const std::string condition = to_python(check.condition, name);
  switch (check.kind) {
    case CheckKind::kGuard:
      return fmt::format("the program was traced for {}", condition);
    case CheckKind::kAssertion:
      return check.message.empty() ? fmt::format("the program asserts {}", condition)
                                   : fmt::format("the program asserts {} ({})", condition, check.message);
    case CheckKind::kBounds:
      return fmt::format("'{}' needs {}", check.message, condition);
  }
  return condition;
}

}  // namespace

std::string_view name_of(CheckKind kind) {
  switch (kind) {
    case CheckKind::kGuard:
      return "guard";
    case CheckKind::kAssertion:
      return "assertion";
    case CheckKind::kBounds:
      return "bounds";
  }
  return "";
}

SymbolSpelling spelled_by(const SpelledSymbols& names) {
  return [&names](const std::string& symbol) {
    const auto found = names.find(symbol);
    return found == names.end() ? symbol : found->second;
  };
}

void fail_check(const SizeCheck& check, const SpelledSymbols& names, const SymbolValues& values) {
  const SymbolSpelling name = spelled_by(names);
  const char* advice = check.kind == CheckKind::kGuard
                           ? "for other sizes, export the model with an example of such a size"
                           : "";
  const std::string here = describe_values(check, name, values);
  throw UserError(
      {.code = "INGOT-U312",
       .message = describe(check, name) + (here.empty() ? ", which never holds" : "; here " + here),
       .node = check.node,
       .source_line = check.source,
       .advice = advice});
}

}  // namespace ingot::core
