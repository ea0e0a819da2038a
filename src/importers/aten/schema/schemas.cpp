// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/schema/schemas.h"

#include <array>
#include <charconv>
#include <utility>

#include "support/error.h"

namespace ingot::core::aten {
namespace {

constexpr std::string_view kSchemas =
#include "importers/aten/schema/aten_schemas.def"
    ;

std::string_view overload_name(std::string_view line) { return line.substr(0, line.find('(')); }

// The line whose name is `name`, or "". A line is "name(arguments) -> returns\n"; lines are sorted by name.
std::string_view find_line(std::string_view name) {
  std::string_view rest = kSchemas.substr(1);  // the literal begins with a line end
  while (!rest.empty()) {
    const size_t middle = rest.size() / 2;
    const size_t before = rest.rfind('\n', middle == 0 ? 0 : middle - 1);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const std::string_view line = rest.substr(begin, rest.find('\n', begin) - begin);
    if (overload_name(line) == name) return line;
    rest = name < overload_name(line) ? rest.substr(0, begin) : rest.substr(begin + line.size() + 1);
  }
  return {};
}

// Parses one schema line. The table is generated and tested, so a parse error is a bug.
class SchemaParser {
 public:
  explicit SchemaParser(std::string_view text) : text_(text) {}

  std::vector<SchemaArgument> arguments() {
    std::vector<SchemaArgument> result;
    bool keyword_only = false;
    expect("(");
    while (!accept(")")) {
      if (accept("*")) {
        keyword_only = true;
      } else {
        SchemaArgument& argument = result.emplace_back();
        argument.type = type();
        expect(" ");
        argument.name = word();
        argument.is_keyword_only = keyword_only;
        if (accept("=")) argument.default_value = default_value(argument.type);
      }
      accept(", ");
    }
    return result;
  }

  // The words after the schema and a bar.
  void words(Schema& schema) {
    if (!accept(" |")) return;
    while (accept(" ")) word_of(schema, take(text_.find(' ')));
  }

  std::vector<SchemaType> returns() {
    std::vector<SchemaType> result;
    expect(" -> ");
    if (!accept("(")) {
      result.push_back(type());
      if (!text_.starts_with(" |") && accept(" ")) word();  // a result may be named
      return result;
    }
    while (!accept(")")) {
      result.push_back(type());
      if (accept(" ")) word();
      accept(", ");
    }
    return result;
  }

 private:
  bool accept(std::string_view token) {
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) { invariant(accept(token), "a schema in the table is malformed"); }

  std::string_view take(size_t length) {
    const std::string_view taken = text_.substr(0, length);
    text_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view word() { return take(text_.find_first_of(" (),=[]?")); }

  static void word_of(Schema& schema, std::string_view word) {
    using enum Promotion;
    constexpr auto kPromotions =
        std::to_array<std::pair<std::string_view, Promotion>>({{"default", kDefault},
                                                               {"no_opmath", kNoOpmath},
                                                               {"int_to_float", kIntToFloat},
                                                               {"always_bool", kAlwaysBool},
                                                               {"bool_to_long", kBoolToLong},
                                                               {"complex_to_float", kComplexToFloat}});
    for (const auto& [text, promotion] : kPromotions)
      if (text == word) schema.promotion = promotion;
    schema.is_inplace_view |= word == "inplace_view";
    schema.draws |= word == "draws";
    if (schema.promotion == kNone && !schema.is_inplace_view && !schema.draws)
      throw InternalError("a schema in the table has an unknown word: " + std::string(word));
  }

  static ArgumentKind kind_of(std::string_view name) {
    using enum ArgumentKind;
    constexpr auto kKinds =
        std::to_array<std::pair<std::string_view, ArgumentKind>>({{"Tensor", kTensor},
                                                                  {"int", kInteger},
                                                                  {"SymInt", kInteger},
                                                                  {"float", kFloat},
                                                                  {"bool", kBool},
                                                                  {"SymBool", kBool},
                                                                  {"Scalar", kScalar},
                                                                  {"str", kString},
                                                                  {"ScalarType", kDType},
                                                                  {"Layout", kLayout},
                                                                  {"MemoryFormat", kMemoryFormat},
                                                                  {"Device", kDevice},
                                                                  {"Generator", kGenerator}});
    for (const auto& [text, kind] : kKinds)
      if (text == name) return kind;
    throw InternalError("a schema in the table has an unknown type: " + std::string(name));
  }

  // "(a)", "(a!)", "(a -> *)"
  void alias(SchemaType& type) {
    if (!accept("(")) return;
    const std::string_view inside = take(text_.find(')'));
    expect(")");
    type.alias = inside.substr(0, 1);
    type.is_written = inside.find('!') != std::string_view::npos;
  }

  SchemaType type() {
    const std::string_view start = text_;
    SchemaType result;
    result.kind = kind_of(word());
    alias(result);
    const bool optional = accept("?");
    if (accept("[")) {
      result.is_list = true;
      result.has_optional_elements = optional;
      const std::string_view size = take(text_.find(']'));
      std::from_chars(size.data(), size.data() + size.size(), result.list_size);
      expect("]");
      result.is_optional = accept("?");
    } else {
      result.is_optional = optional;
    }
    result.text = start.substr(0, start.size() - text_.size());
    return result;
  }

  Argument default_value(const SchemaType& type) {
    if (accept("None")) return {None{}};
    if (accept("[")) {
      ArgumentList list;
      while (!accept("]")) {
        list.push_back(element(type));
        accept(",");
      }
      return {std::move(list)};
    }
    Argument value = element(type);
    if (!type.is_list) return value;
    return {ArgumentList(static_cast<size_t>(type.list_size), value)};
  }

  Argument element(const SchemaType& type) {
    const char quote = text_.front();
    if (quote == '"' || quote == '\'') {
      take(1);
      Argument text{std::string(take(text_.find(quote)))};
      take(1);
      return text;
    }
    const std::string_view token = take(text_.find_first_of(",)]"));
    if (token == "True" || token == "False") return {token == "True"};
    if (token == "Mean") return {int64_t{1}};  // at::Reduction::Mean
    if (token == "long") return {DType::kI64};
    if (type.kind == ArgumentKind::kMemoryFormat) return {std::string(token)};
    return number(token, type.kind);
  }

  static Argument number(std::string_view token, ArgumentKind kind) {
    const char* end = token.data() + token.size();
    if (kind == ArgumentKind::kFloat || token.find_first_of(".e") != std::string_view::npos) {
      double value = 0;
      invariant(std::from_chars(token.data(), end, value).ptr == end,
                "a default in the table is not a number");
      return {value};
    }
    int64_t value = 0;
    invariant(std::from_chars(token.data(), end, value).ptr == end, "a default in the table is not a number");
    return {value};
  }

  std::string_view text_;
};

}  // namespace

std::optional<Schema> find_schema(std::string_view target) {
  constexpr std::string_view kNamespace = "aten.";
  constexpr std::string_view kDefault = ".default";
  if (!target.starts_with(kNamespace)) return std::nullopt;
  std::string_view name = target.substr(kNamespace.size());
  if (name.ends_with(kDefault)) name.remove_suffix(kDefault.size());
  const std::string_view line = find_line(name);
  if (line.empty()) return std::nullopt;
  SchemaParser parser(line.substr(name.size()));
  Schema schema;
  schema.target = target;
  schema.arguments = parser.arguments();
  schema.returns = parser.returns();
  parser.words(schema);
  return schema;
}

bool draws_random_numbers(std::string_view target) {
  const std::optional<Schema> schema = find_schema(target);
  return schema && schema->draws;
}

}  // namespace ingot::core::aten
