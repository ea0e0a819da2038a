// SPDX-License-Identifier: Apache-2.0
#include "ir/attribute.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "support/scanner.h"

namespace ingot::core {
namespace {

std::string print(bool value) { return value ? "true" : "false"; }
std::string print(int64_t value) { return std::to_string(value); }
std::string print(double value) {
  return fmt::format("{}", value);
}  // the shortest text that reads back equal
std::string print(const std::string& value) { return quote(value); }
std::string print(DType value) { return std::string(name(value)); }
std::string print(const Dim& value) { return value.to_string(); }
std::string print(const Layout& value) { return value.is_row_major() ? "{}" : to_string(value); }
template <typename Element>
std::string print(const std::vector<Element>& list) {
  std::string text = "[";
  for (const Element& element : list) text += (text.size() == 1 ? "" : ", ") + print(element);
  return text + "]";
}

[[noreturn]] void refuse(std::string_view text, std::string_view wanted) {
  throw UserError("INGOT-U111", fmt::format("'{}' is not {}", text, wanted));
}

template <typename Number>
Number parse_number(std::string_view text, std::string_view wanted) {
  Number value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || text.empty()) refuse(text, wanted);
  return value;
}

void parse(std::string_view text, bool& value) {
  value = text == "true";
  if (!value && text != "false") refuse(text, "true or false");
}
void parse(std::string_view text, int64_t& value) { value = parse_number<int64_t>(text, "an integer"); }
void parse(std::string_view text, double& value) { value = parse_number<double>(text, "a number"); }
void parse(std::string_view text, std::string& value) {
  Scanner scanner(text);
  value = scanner.quoted();
  if (!scanner.at_end()) refuse(text, "quoted text");
}
void parse(std::string_view text, DType& value) {
  const auto dtype = parse_dtype(text);
  if (!dtype) refuse(text, "a dtype");
  value = *dtype;
}
void parse(std::string_view text, Dim& value) { value = parse_dim(text); }
template <typename Element>
void parse(std::string_view text, std::vector<Element>& list) {
  Scanner scanner(text);
  scanner.expect("[");
  if (!scanner.accept("]")) {
    do {
      parse(scanner.raw_until(",]"), list.emplace_back());
    } while (scanner.accept(","));
    scanner.expect("]");
  }
  if (!scanner.at_end()) refuse(text, "a list");
}

// The alternative number `kind`, default-constructed.
template <size_t... kKinds>
AttributeValue empty_value(size_t kind, std::index_sequence<kKinds...>) {
  AttributeValue value;
  ((kKinds == kind ? (value.emplace<kKinds>(), 0) : 0), ...);
  return value;
}

}  // namespace

std::string to_string(const AttributeValue& value) {
  return std::visit([](const auto& held) { return print(held); }, value);
}

AttributeValue parse_attribute(std::string_view text, size_t kind, size_t rank_hint) {
  constexpr size_t kKinds = std::variant_size_v<AttributeValue>;
  invariant(kind < kKinds, "unknown kind of attribute");
  AttributeValue value = empty_value(kind, std::make_index_sequence<kKinds>());
  if (auto* layout = std::get_if<Layout>(&value)) {
    *layout = parse_layout(text == "{}" ? "" : text, rank_hint);
  } else {
    std::visit(
        [&](auto& held) {
          if constexpr (!std::is_same_v<std::remove_reference_t<decltype(held)>, Layout>) parse(text, held);
        },
        value);
  }
  return value;
}

}  // namespace ingot::core
